#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace faultline::netlink {

/// The UDP port of RoCE v2 (IBA annex 17).
inline constexpr std::uint16_t kRocePort = 4791;

/// Classic BPF over a frame with its network header known (in traffic control and in packet
/// sockets alike): `on_roce` for RoCE v2, over IPv4 without options or IPv6 without extension
/// headers, which is how RDMA devices send it; else `otherwise`.
std::vector<sock_filter> roceProgram(std::uint32_t on_roce, std::uint32_t otherwise);

/// An IPv4 packet (without an Ethernet header) to that port, which no queue pair takes: for the
/// documentation's network (RFC 5737), with a time to live of one hop.
std::vector<std::uint8_t> roceProbe();

}  // namespace faultline::netlink

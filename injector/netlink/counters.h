#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// What an interface has carried since it exists, counted by the kernel in 64 bits.
struct LinkCounters {
  int ifindex = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_packets = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_dropped = 0;
};

/// Counters of one interface.
Result<LinkCounters> readCounters(Socket& socket, int ifindex);

/// Counters of all interfaces of the namespace in one question; `counters` is overwritten and its
/// memory reused. Made to be called every millisecond (tens of microseconds for 16 ports).
Status readAllCounters(Socket& socket, std::vector<LinkCounters>& counters);

}  // namespace faultline::netlink

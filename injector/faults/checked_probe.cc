#include "injector/faults/checked_probe.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/random.h"
#include "injector/netlink/shaper.h"

namespace faultline::injector {
namespace {

constexpr std::size_t kProbeIpHeader = 20;
constexpr std::size_t kProbeUdpHeader = 8;
constexpr std::array<std::uint8_t, 4> kSource{198, 18, 0xfa, 0x17};
constexpr std::array<std::uint8_t, 4> kDestination{198, 18, 0, 1};
constexpr std::uint32_t kDestinationNumber = 0xc6120001;
constexpr std::uint16_t kPort = 9;  // RFC 863: discard
constexpr std::size_t kProbeMark = 4;
constexpr std::size_t kSourceOffset = 12;
constexpr std::size_t kDestinationOffset = 16;
// A listener's socket holds more than twice as many until it is looked at again.
constexpr int kPacketsPerStep = 64;

void put16(CheckedDatagram::Packet& packet, std::size_t offset, std::size_t value) {
  packet[offset] = static_cast<std::uint8_t>(value >> 8);
  packet[offset + 1] = static_cast<std::uint8_t>(value);
}

/// RFC 1071, without the final complement.
std::uint32_t onesSum(std::span<const std::uint8_t> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += bytes[i] * 256U + bytes[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/// Over the pseudo header, the UDP header and the payload: 0xffff where the checksum is right.
std::uint32_t udpSum(const CheckedDatagram::Packet& packet) {
  const std::span bytes(packet);
  const std::uint32_t pseudo = onesSum(bytes.subspan(kSourceOffset, 8)) + IPPROTO_UDP +
                               kProbeUdpHeader + CheckedDatagram::kPayload;
  return onesSum(bytes.subspan(kProbeIpHeader), pseudo);
}

std::uint8_t payloadByte(std::size_t i) { return static_cast<std::uint8_t>(i * 37 + 11); }

/// Only these datagrams, so that the job's packets cost little here.
Status acceptOnlyOurs(int fd) {
  constexpr std::uint8_t kNext = 0, kOther = 1;
  std::array<sock_filter, 4> program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kDestinationOffset},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, kNext, kOther, kDestinationNumber},
      sock_filter{BPF_RET | BPF_K, 0, 0, CheckedDatagram::kBytes},
      sock_filter{BPF_RET | BPF_K, 0, 0, 0},
  };
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, "filter probe datagrams");
}

Status overtakeBulk(int fd) {
  constexpr auto kPriority = netlink::kControlClass;
  if (::setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &kPriority, sizeof kPriority) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, "give probe datagrams their class");
}

}  // namespace

CheckedDatagram::Packet CheckedDatagram::make(std::uint16_t mark) {
  Packet packet{};
  packet[0] = 0x45;  // version 4, five words
  put16(packet, 2, kBytes);
  put16(packet, kProbeMark, mark);
  packet[8] = 1;  // it is to live for one hop
  packet[9] = IPPROTO_UDP;
  std::ranges::copy(kSource, packet.begin() + kSourceOffset);
  std::ranges::copy(kDestination, packet.begin() + kDestinationOffset);
  put16(packet, 10, ~onesSum(std::span(packet).first(kProbeIpHeader)) & 0xffff);
  put16(packet, kProbeIpHeader, kPort);
  put16(packet, kProbeIpHeader + 2, kPort);
  put16(packet, kProbeIpHeader + 4, kProbeUdpHeader + kPayload);
  for (std::size_t i = 0; i < kPayload; ++i)
    packet[kProbeIpHeader + kProbeUdpHeader + i] = payloadByte(i);
  put16(packet, kProbeIpHeader + 6, ~udpSum(packet) & 0xffff);
  return packet;
}

void CheckedDatagram::count(const Packet& packet, std::size_t size, std::uint16_t mark,
                            CheckedCounts& counts) {
  const int its = packet[kProbeMark] * 256 + packet[kProbeMark + 1];
  if (size != kBytes || its != mark) return;
  bool changed = false;
  for (std::size_t i = 0; i < kPayload; ++i) {
    changed |= packet[kProbeIpHeader + kProbeUdpHeader + i] != payloadByte(i);
  }
  constexpr std::uint32_t kRight = 0xffff;
  const bool right = udpSum(packet) == kRight;
  ++(!right ? counts.wrong_checksum : changed ? counts.believed : counts.intact);
}

Result<CheckedProbe> CheckedProbe::open(const netlink::LinkEnd& sender,
                                        const netlink::LinkEnd& listener, Listening listening,
                                        int packets) {
  ASSIGN_OR_RETURN(netlink::PacketSocket sending,
                   netlink::PacketSocket::open(*sender.socket, sender.ifindex, 0, overtakeBulk));
  // A socket for all kinds of packets sees them before filters do, and when they leave; one for IP
  // alone sees those that the kernel takes in.
  const std::uint16_t ethertype = listening == Listening::kLeaving ? ETH_P_ALL : ETH_P_IP;
  ASSIGN_OR_RETURN(
      netlink::PacketSocket hearing,
      netlink::PacketSocket::open(*listener.socket, listener.ifindex, ethertype, acceptOnlyOurs));
  CheckedProbe probe(std::move(sending), std::move(hearing), packets);
  RETURN_IF_ERROR(probe.restart());
  return probe;
}

Status CheckedProbe::restart() {
  mark_ = static_cast<std::uint16_t>(
      Random::mix(static_cast<std::uint64_t>(now().time_since_epoch().count())));
  sent_ = 0;
  counts_ = {};
  return okStatus();
}

Status CheckedProbe::step() {
  const CheckedDatagram::Packet packet = CheckedDatagram::make(mark_);
  for (int burst = 0; burst < kPacketsPerStep && !allSent(); ++burst) {
    ASSIGN_OR_RETURN(const bool sent,
                     sender_.send(ETH_P_IP, netlink::kBroadcastMac, packet.data(), packet.size()));
    if (!sent) break;
    ++sent_;
  }
  while (true) {
    CheckedDatagram::Packet arrived{};
    ASSIGN_OR_RETURN(const std::optional<std::size_t> size,
                     listener_.receive(arrived.data(), arrived.size()));
    if (!size) return okStatus();
    CheckedDatagram::count(arrived, *size, mark_, counts_);
  }
}

}  // namespace faultline::injector

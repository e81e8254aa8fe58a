#include "injector/netlink/roce_tap.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "injector/netlink/roce_frames.h"

namespace faultline::netlink {
namespace {

enum class Way { kSent, kReceived };

// Locally administered, so that no adapter was made with it.
constexpr MacAddress kNobody{0x02, 0xfa, 0x17, 0x00, 0x00, 0x00};

/// Only RoCE frames of one way, and of each as little as possible: they are counted, not read.
Status acceptOnly(int fd, Way way) {
  constexpr auto kPacketType =
      static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_PKTTYPE);
  constexpr std::uint32_t kKeptBytes = 1;
  const bool sent = way == Way::kSent;
  std::vector<sock_filter> program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kPacketType},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint8_t>(sent ? 1 : 0),
                  static_cast<std::uint8_t>(sent ? 0 : 1), PACKET_OUTGOING},
      sock_filter{BPF_RET | BPF_K, 0, 0, 0},
  };
  for (const sock_filter& step : roceProgram(kKeptBytes, 0)) program.push_back(step);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, "filter RoCE frames");
}

/// The kernel's own count since the last call, which has those as well for which there was no room.
Result<std::uint64_t> takeCount(int fd) {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  if (::getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) return stats.tp_packets;
  return Status::fromErrno(errno, "count RoCE frames");
}

}  // namespace

Result<RoceTap> RoceTap::open(const Socket& socket, int ifindex) {
  const auto tap = [&](Way way) {
    return PacketSocket::open(socket, ifindex, ETH_P_ALL,
                              [way](int fd) { return acceptOnly(fd, way); });
  };
  ASSIGN_OR_RETURN(PacketSocket sent, tap(Way::kSent));
  ASSIGN_OR_RETURN(PacketSocket received, tap(Way::kReceived));
  ASSIGN_OR_RETURN(PacketSocket probe, tap(Way::kReceived));
  return RoceTap(std::move(sent), std::move(received), std::move(probe));
}

Result<RoceCount> RoceTap::count() {
  ASSIGN_OR_RETURN(const std::uint64_t sent, takeCount(sent_.fd()));
  ASSIGN_OR_RETURN(const std::uint64_t received, takeCount(received_.fd()));
  count_.sent += sent;
  count_.received += received;
  return count_;
}

Status RoceTap::reset() {
  const auto before = count();
  count_ = {};
  return before.status();
}

Result<bool> RoceTap::sendProbe() const {
  const std::vector<std::uint8_t> packet = roceProbe();
  return probe_.send(ETH_P_IP, kNobody, packet.data(), packet.size());
}

}  // namespace faultline::netlink

#include "injector/faults/detour.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>

#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"

namespace faultline::injector {
namespace {

// The mark of a packet on its way into the detour, and on its way back. No other packet has one:
// the kernel takes it away where a packet changes its namespace.
constexpr std::int32_t kIntoDetour = 0x0fa17d0c;
constexpr std::int32_t kOutOfDetour = 0x0fa17d0d;
constexpr auto kPacketMark = static_cast<std::int16_t>(offsetof(__sk_buff, mark));

/// Sends a share of the packets to another interface instead. What has been there passes.
std::vector<bpf_insn> divertTo(int detour, double share) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kFirst{1}, kSecond{2}, kBuffer{6}, kMark{7};
  return netlink::PacketCode()
      .copy(kBuffer, kFirst)
      .load(BPF_W, kResult, kBuffer, kPacketMark)
      .jumpIf(BPF_JEQ, kResult, kOutOfDetour, "back")
      .call(BPF_FUNC_get_prandom_u32)
      .jumpIf(BPF_JGE, kResult, netlink::shareOf32Bits(share), "pass")
      .set(kMark, kIntoDetour)
      .store(BPF_W, kBuffer, kPacketMark, kMark)
      .set(kFirst, detour)
      .set(kSecond, 0)
      .call(BPF_FUNC_redirect)
      .leave(TC_ACT_REDIRECT)
      .here("back")
      .set(kMark, 0)
      .store(BPF_W, kBuffer, kPacketMark, kMark)
      .here("pass")
      .leave(TC_ACT_UNSPEC)
      .finish();
}

/// Puts what comes out of the detour where it was taken; the rest is the kernel's own chatter on a
/// new interface, and is dropped.
std::vector<bpf_insn> putBack(int ifindex, netlink::Passing passing) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kFirst{1}, kSecond{2};
  return netlink::PacketCode()
      .load(BPF_W, kResult, kFirst, kPacketMark)
      .jumpIf(BPF_JNE, kResult, kOutOfDetour, "drop")
      .set(kFirst, ifindex)
      .set(kSecond, passing == netlink::Passing::kReceived ? BPF_F_INGRESS : 0)
      .call(BPF_FUNC_redirect)
      .leave(TC_ACT_REDIRECT)
      .here("drop")
      .leave(TC_ACT_SHOT)
      .finish();
}

Status setDetourOption(int fd, int level, int option, const void* value, socklen_t size) {
  if (::setsockopt(fd, level, option, value, size) == 0) return okStatus();
  return Status::fromErrno(errno, "set up the packet socket of a detour");
}

// Far above what the kernel and the clusters of a bench give; four for each port.
constexpr int kFirstIfindex = 0x0fa10000;
// A segment of 64 KiB with its headers, and what was left to the NIC (struct virtio_net_hdr).
constexpr std::size_t kLargestPacket = (64 << 10) + 512;
// For as long as nobody looks: 32 MiB are 25 ms of 10 Gbit/s.
constexpr int kWaitingBytes = 32 << 20;

}  // namespace

Result<std::unique_ptr<Detour>> Detour::make(const netlink::LinkEnd& port,
                                             netlink::Passing passing) {
  std::unique_ptr<Detour> detour(new Detour(port, passing));
  RETURN_IF_ERROR(detour->open());
  return detour;
}

Detour::~Detour() {
  const Status status = close();
  if (!status.ok()) spdlog::error("reorder: {}", status.message());
}

netlink::PacketProgram Detour::divert(double share) const {
  return {passing_, divertTo(entrance(), share)};
}

Status Detour::close() {
  if (!made_) return okStatus();
  made_ = false;
  return netlink::deleteNetDevice(*port_.socket, entrance());
}

int Detour::entrance() const { return kFirstIfindex + 4 * port_.ifindex + (received() ? 0 : 2); }

Status Detour::step(TimePoint now, TimePoint due) {
  while (true) {
    frame_.resize(kLargestPacket);
    const ssize_t size = ::recv(fd_.get(), frame_.data(), frame_.size(), 0);
    if (size < 0 && (errno == EINTR || errno == ENETDOWN)) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return Status::fromErrno(errno, "take a packet that is to be delayed");
    held_.push_back({now, {frame_.begin(), frame_.begin() + size}});
  }
  for (; !held_.empty() && held_.front().since <= due; held_.pop_front()) {
    const std::vector<char>& packet = held_.front().packet;
    if (::send(fd_.get(), packet.data(), packet.size(), 0) >= 0) continue;
    if (errno == EAGAIN || errno == ENOBUFS) break;
    return Status::fromErrno(errno, "send a packet that was delayed");
  }
  return okStatus();
}

Result<std::int64_t> Detour::lost() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  if (::getsockopt(fd_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0) {
    return Status::fromErrno(errno, "read what a detour has lost");
  }
  return std::int64_t{stats.tp_drops};
}

Status Detour::open() {
  netlink::Socket& socket = *port_.socket;
  const std::string name = fmt::format("fl{}{}", received() ? "o" : "i", port_.ifindex);
  // As large as any packet is allowed to be.
  constexpr unsigned kMtu = 65'535;
  RETURN_IF_ERROR(netlink::createVeth(
      socket, {.name = name + "a", .ifindex = entrance(), .mtu = kMtu}, socket.namespaceFd(),
      {.name = name + "b", .ifindex = farEnd(), .mtu = kMtu}));
  made_ = true;
  const netlink::PacketProgram back{netlink::Passing::kReceived, putBack(port_.ifindex, passing_)};
  RETURN_IF_ERROR(netlink::addPacketPrograms(socket, entrance(), std::span(&back, 1)));
  // The socket sees packets before filters do, and nobody else is to.
  constexpr netlink::DropRule kAll;
  RETURN_IF_ERROR(netlink::addDropRules(socket, farEnd(), std::span(&kAll, 1)));
  RETURN_IF_ERROR(openSocket());
  RETURN_IF_ERROR(netlink::setUp(socket, farEnd(), true));
  return netlink::setUp(socket, entrance(), true);
}

Status Detour::openSocket() {
  ASSIGN_OR_RETURN(const auto inside, netlink::ScopedNamespace::enter(port_.socket->namespaceFd()));
  fd_ = UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return Status::fromErrno(errno, "open the packet socket of a detour");
  constexpr int kOn = 1;
  RETURN_IF_ERROR(setDetourOption(fd_.get(), SOL_PACKET, PACKET_VNET_HDR, &kOn, sizeof kOn));
  RETURN_IF_ERROR(
      setDetourOption(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kWaitingBytes, sizeof kWaitingBytes));
  RETURN_IF_ERROR(
      setDetourOption(fd_.get(), SOL_SOCKET, SO_MARK, &kOutOfDetour, sizeof kOutOfDetour));
  std::array<sock_filter, 4> onlyDiverted{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0,
                  static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_MARK)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kIntoDetour},
      sock_filter{BPF_RET | BPF_K, 0, 0, kLargestPacket},
      sock_filter{BPF_RET | BPF_K, 0, 0, 0},
  };
  const sock_fprog filter{onlyDiverted.size(), onlyDiverted.data()};
  RETURN_IF_ERROR(setDetourOption(fd_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = farEnd();
  address.sll_protocol = htons(ETH_P_ALL);
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, "bind the packet socket of a detour");
}

}  // namespace faultline::injector

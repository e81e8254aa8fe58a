#include "injector/netlink/frame_socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

constexpr std::uint16_t kProbeProtocol = 0x88b5;

/// Lets only frames of our ethertype in, so that bulk traffic costs nothing here. SOCK_DGRAM
/// filters see the frame without its Ethernet header; the ethertype is ancillary data.
Status acceptOnlyProbes(int fd) {
  std::array<sock_filter, 4> program{
      sock_filter{
          BPF_LD | BPF_W | BPF_ABS, 0, 0,
          static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_PROTOCOL)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kProbeProtocol},
      sock_filter{BPF_RET | BPF_K, 0, 0, sizeof(std::uint32_t)},
      sock_filter{BPF_RET | BPF_K, 0, 0, 0},
  };
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) {
    return Status::fromErrno(errno, "filter probe frames");
  }
  return okStatus();
}

}  // namespace

Result<FrameSocket> FrameSocket::open(const Socket& socket, int ifindex, std::uint32_t mark) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  // Protocol 0 receives nothing until it is bound, i.e. until the filter is in place.
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status::fromErrno(errno, "open a packet socket");
  RETURN_IF_ERROR(acceptOnlyProbes(fd.get()));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex;
  address.sll_protocol = htons(ETH_P_ALL);  // only this sees frames that go out as well
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::fromErrno(errno, fmt::format("bind a packet socket to interface {}", ifindex));
  }
  return FrameSocket(std::move(fd), ifindex, mark);
}

Result<bool> FrameSocket::send(const MacAddress& destination, std::size_t payload) const {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex_;
  address.sll_protocol = htons(kProbeProtocol);
  address.sll_halen = ETH_ALEN;
  std::copy(destination.begin(), destination.end(), address.sll_addr);
  std::vector<char> frame(std::max(payload, sizeof mark_));
  std::memcpy(frame.data(), &mark_, sizeof mark_);
  const auto try_it = [&] {
    return ::sendto(fd_.get(), frame.data(), frame.size(), 0,
                    reinterpret_cast<const sockaddr*>(&address), sizeof address);
  };
  ssize_t sent = try_it();
  // The interface was down since the last call: told once, although it may be up again.
  if (sent < 0 && errno == ENETDOWN) sent = try_it();
  if (sent >= 0) return true;
  // ENOBUFS: the queue dropped it, which also means that it is full.
  if (errno == EAGAIN || errno == ENOBUFS) return false;
  return Status::fromErrno(errno, fmt::format("send a probe frame on interface {}", ifindex_));
}

Result<int> FrameSocket::countPassed() const {
  int passed = 0;
  while (true) {
    std::uint32_t mark = 0;
    const ssize_t size = ::recv(fd_.get(), &mark, sizeof mark, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return passed;
    // The interface was set down: what is queued can still be read.
    if (size < 0 && errno == ENETDOWN) continue;
    if (size < 0) return Status::fromErrno(errno, "receive probe frames");
    if (size == sizeof mark && mark == mark_) ++passed;
  }
}

}  // namespace faultline::netlink

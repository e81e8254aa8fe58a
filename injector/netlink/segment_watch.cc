#include "injector/netlink/segment_watch.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

// The longest IPv4 header, and the fixed part of TCP's.
constexpr std::uint32_t kHeaderBytes = 60 + sizeof(tcphdr);
constexpr std::uint32_t kProtocolAt = 9;  // in the IPv4 header
constexpr std::uint32_t kFragmentAt = 6;  // 13 bits of offset: only the first has ports
constexpr std::uint32_t kFragmentMask = 0x1fff;
constexpr std::uint32_t kFlagsAt = 13;  // in the TCP header

/// SOCK_DGRAM filters see the frame from its IPv4 header on.
Status acceptOnlyEnds(int fd) {
  std::array<sock_filter, 9> program{
      sock_filter{BPF_LD | BPF_B | BPF_ABS, 0, 0, kProtocolAt},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 6, IPPROTO_TCP},
      sock_filter{BPF_LD | BPF_H | BPF_ABS, 0, 0, kFragmentAt},
      sock_filter{BPF_JMP | BPF_JSET | BPF_K, 4, 0, kFragmentMask},
      sock_filter{BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0},
      sock_filter{BPF_LD | BPF_B | BPF_IND, 0, 0, kFlagsAt},
      sock_filter{BPF_JMP | BPF_JSET | BPF_K, 0, 1, TH_FIN | TH_RST},
      sock_filter{BPF_RET | BPF_K, 0, 0, kHeaderBytes},
      sock_filter{BPF_RET | BPF_K, 0, 0, 0},
  };
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, "filter TCP segments");
}

}  // namespace

Result<SegmentWatch> SegmentWatch::open(const Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  // Protocol 0 receives nothing until it is bound, i.e. until the filter is in place.
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status::fromErrno(errno, "open a packet socket");
  RETURN_IF_ERROR(acceptOnlyEnds(fd.get()));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex;
  // What an interface sends is shown only to listeners of all protocols.
  address.sll_protocol = htons(ETH_P_ALL);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::fromErrno(errno, fmt::format("listen on interface {}", ifindex));
  }
  return SegmentWatch(std::move(fd));
}

Result<std::vector<EndingSegment>> SegmentWatch::passed() {
  std::vector<EndingSegment> segments;
  while (true) {
    std::array<char, kHeaderBytes> packet;
    const ssize_t size = ::recv(fd_.get(), packet.data(), packet.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return segments;
    if (size < 0 && errno == ENETDOWN) continue;  // what is queued can still be read
    if (size < 0) return Status::fromErrno(errno, "watch TCP segments");
    iphdr ip;
    tcphdr tcp;
    if (static_cast<std::size_t>(size) < sizeof ip) continue;
    std::memcpy(&ip, packet.data(), sizeof ip);
    constexpr std::size_t kBytesPerWord = 4;
    const std::size_t start = ip.ihl * kBytesPerWord;
    // The filter also lets other protocols pass whose bytes happen to look so.
    if (ip.version != 4 || static_cast<std::size_t>(size) < start + sizeof tcp) continue;
    std::memcpy(&tcp, packet.data() + start, sizeof tcp);
    segments.push_back({{ip.saddr, ip.daddr, tcp.source, tcp.dest}, tcp.rst != 0});
  }
}

}  // namespace faultline::netlink

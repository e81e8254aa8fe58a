#include "injector/netlink/frame_hold.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

// What TCP has under way on a link, and sends again into a silence, is far less.
constexpr int kBufferBytes = 32 << 20;
// A segment of 64 KiB with its headers.
constexpr std::size_t kLargestFrame = (64 << 10) + 512;
// struct virtio_net_hdr, whose header is no C++: what was left to the NIC.
constexpr std::size_t kOffloadHeader = 10;
constexpr std::uint32_t kWhole = 0x40000;  // a filter's word for "all bytes of the frame"

Status setOption(int fd, int level, int option, const void* value, socklen_t size) {
  if (::setsockopt(fd, level, option, value, size) == 0) return okStatus();
  return Status::fromErrno(errno, "set up a packet socket");
}

Status setFlag(int fd, int level, int option, int value) {
  return setOption(fd, level, option, &value, sizeof value);
}

Status setFilter(int fd, std::vector<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return setOption(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

std::vector<sock_filter> nothing() { return {sock_filter{BPF_RET | BPF_K, 0, 0, 0}}; }

std::vector<sock_filter> taking(const HeldSource& source) {
  const auto kind =
      static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_PKTTYPE);
  const bool sent = source.passing == Passing::kSent;
  const auto all = sock_filter{BPF_RET | BPF_K, 0, 0, kWhole};
  const auto none = sock_filter{BPF_RET | BPF_K, 0, 0, 0};
  std::vector<sock_filter> program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kind},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, sent ? std::uint8_t{1} : std::uint8_t{0},
                  sent ? std::uint8_t{0} : std::uint8_t{1}, PACKET_OUTGOING},
      none,
  };
  if (source.destination) {
    const MacAddress& mac = *source.destination;
    const std::uint32_t high = std::uint32_t{mac[0]} << 24 | std::uint32_t{mac[1]} << 16 |
                               std::uint32_t{mac[2]} << 8 | std::uint32_t{mac[3]};
    const std::uint32_t low = std::uint32_t{mac[4]} << 8 | std::uint32_t{mac[5]};
    program.insert(program.end(), {
                                      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, high},
                                      none,
                                      sock_filter{BPF_LD | BPF_H | BPF_ABS, 0, 0, 4},
                                      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, low},
                                      none,
                                  });
  }
  program.push_back(all);
  return program;
}

Status bindTo(int fd, int ifindex, std::uint16_t ethertype) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex;
  address.sll_protocol = htons(ethertype);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, fmt::format("bind a packet socket to interface {}", ifindex));
}

/// In the namespace of `socket`, with the headers of frames and what was left to the NIC.
Result<UniqueFd> openRaw(const Socket& socket) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status::fromErrno(errno, "open a packet socket");
  RETURN_IF_ERROR(setFlag(fd.get(), SOL_PACKET, PACKET_VNET_HDR, 1));
  return fd;
}

}  // namespace

Result<FrameHold> FrameHold::open(const Socket& socket, const std::vector<HeldSource>& sources,
                                  const LinkEnd& outlet) {
  std::vector<Source> open;
  for (const HeldSource& source : sources) {
    ASSIGN_OR_RETURN(UniqueFd fd, openRaw(socket));
    RETURN_IF_ERROR(setFilter(fd.get(), nothing()));
    RETURN_IF_ERROR(setFlag(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes));
    RETURN_IF_ERROR(bindTo(fd.get(), source.ifindex, ETH_P_ALL));
    open.push_back({source, std::move(fd)});
  }
  ASSIGN_OR_RETURN(UniqueFd sending, openRaw(*outlet.socket));
  RETURN_IF_ERROR(bindTo(sending.get(), outlet.ifindex, 0));
  return FrameHold(std::move(open), std::move(sending));
}

Status FrameHold::begin() {
  RETURN_IF_ERROR(forget());
  for (const Source& source : sources_) {
    RETURN_IF_ERROR(setFilter(source.fd.get(), taking(source.what)));
  }
  return okStatus();
}

Status FrameHold::end() {
  for (const Source& source : sources_) {
    RETURN_IF_ERROR(setFilter(source.fd.get(), nothing()));
  }
  return okStatus();
}

Status FrameHold::forget() {
  char byte = 0;
  for (const auto& [what, fd] : sources_) {
    while (::recv(fd.get(), &byte, sizeof byte, MSG_TRUNC) >= 0 || errno == ENETDOWN) {
    }
  }
  RETURN_IF_ERROR(counts().status());  // what the kernel has counted so far
  counts_ = {};
  frame_.clear();
  released_ = {};
  refused_ = 0;
  return okStatus();
}

Result<bool> FrameHold::sendFrame() {
  const auto send = [&] { return ::send(outlet_.get(), frame_.data(), frame_.size(), 0) >= 0; };
  bool sent = send();
  if (!sent && errno == ENETDOWN) {
    // Said once more for each time that the interface went down: it may be up again.
    int said = 0;
    socklen_t size = sizeof said;
    (void)::getsockopt(outlet_.get(), SOL_SOCKET, SO_ERROR, &said, &size);
    sent = send();
  }
  if (sent) {
    ++released_.frames;
    released_.bytes += static_cast<Bytes>(frame_.size() - kOffloadHeader);
  } else if (errno == ENETDOWN || errno == ENXIO) {
    ++refused_;
  } else if (errno == EAGAIN || errno == ENOBUFS) {
    return false;
  } else {
    return Status::fromErrno(errno, "send a frame that was held");
  }
  frame_.clear();
  return true;
}

Result<bool> FrameHold::release() {
  for (const auto& [what, fd] : sources_) {
    while (true) {
      if (frame_.empty()) {
        frame_.resize(kLargestFrame);
        const ssize_t size = ::recv(fd.get(), frame_.data(), frame_.size(), 0);
        frame_.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        if (size < 0 && errno == EAGAIN) break;
        if (size < 0 && errno == ENETDOWN) continue;  // said once; what is held is there
        if (size < 0) return Status::fromErrno(errno, "take a frame that is held");
      }
      ASSIGN_OR_RETURN(const bool gone, sendFrame());
      if (!gone) return false;
    }
  }
  return true;
}

Result<HoldCounts> FrameHold::counts() {
  for (const auto& [what, fd] : sources_) {
    tpacket_stats stats{};  // since they were read last
    socklen_t size = sizeof stats;
    if (::getsockopt(fd.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0) {
      return Status::fromErrno(errno, "read what a packet socket has seen");
    }
    counts_.taken += stats.tp_packets;
    counts_.lost += stats.tp_drops;
  }
  return counts_;
}

}  // namespace faultline::netlink

#include "injector/netlink/frame_socket.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "injector/netlink/shaper.h"

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

Status overtakeBulk(int fd) {
  if (::setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &kControlClass, sizeof kControlClass) == 0) {
    return okStatus();
  }
  return Status::fromErrno(errno, "give probe frames their class");
}

}  // namespace

Result<FrameSocket> FrameSocket::open(const Socket& socket, int ifindex, std::uint32_t mark,
                                      FrameClass frames) {
  const auto prepare = [&](int fd) -> Status {
    RETURN_IF_ERROR(acceptOnlyProbes(fd));
    return frames == FrameClass::kControl ? overtakeBulk(fd) : okStatus();
  };
  ASSIGN_OR_RETURN(PacketSocket packets, PacketSocket::open(socket, ifindex, ETH_P_ALL, prepare));
  return FrameSocket(std::move(packets), mark);
}

Result<bool> FrameSocket::send(const MacAddress& destination, std::size_t payload) const {
  std::vector<char> frame(std::max(payload, sizeof mark_));
  std::memcpy(frame.data(), &mark_, sizeof mark_);
  return packets_.send(kProbeProtocol, destination, frame.data(), frame.size());
}

Result<int> FrameSocket::countPassed() const {
  int passed = 0;
  while (true) {
    std::uint32_t mark = 0;
    ASSIGN_OR_RETURN(const auto size, packets_.receive(&mark, sizeof mark));
    if (!size) return passed;
    if (*size == sizeof mark && mark == mark_) ++passed;
  }
}

}  // namespace faultline::netlink

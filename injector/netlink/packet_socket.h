#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

inline constexpr MacAddress kBroadcastMac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// A packet socket on one interface, below IP, which neither writes nor shows Ethernet headers.
/// Never waits. Ethertypes are in host byte order.
class PacketSocket {
 public:
  /// In the namespace of `socket`. Needs CAP_NET_RAW. Receives frames of this ethertype (ETH_P_ALL:
  /// of every one, and those that go out as well) from then on that `prepare` is done with it.
  static Result<PacketSocket> open(const Socket& socket, int ifindex, std::uint16_t ethertype,
                                   const std::function<Status(int fd)>& prepare = {});

  int ifindex() const { return ifindex_; }
  /// For options of the socket; stays this object's.
  int fd() const { return fd_.get(); }
  /// Sends one frame. False when the socket or the queue is full.
  Result<bool> send(std::uint16_t ethertype, const MacAddress& destination, const void* payload,
                    std::size_t size) const;
  /// Takes the next frame that waits, cut to `size`: its bytes; nothing when none waits.
  Result<std::optional<std::size_t>> receive(void* payload, std::size_t size) const;

 private:
  PacketSocket(UniqueFd fd, int ifindex) : fd_(std::move(fd)), ifindex_(ifindex) {}
  UniqueFd fd_;
  int ifindex_;
};

}  // namespace faultline::netlink

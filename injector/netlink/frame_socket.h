#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/link.h"

namespace faultline::netlink {

inline constexpr MacAddress kBroadcastMac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// Sends and counts probe frames of our own on one interface, below IP: no address, route or
/// neighbour is needed, and nobody else takes notice of them (local experimental ethertype 0x88B5,
/// IEEE 802). Frames go through the interface's queueing discipline, as everybody's.
class FrameSocket {
 public:
  /// Opens a socket in the namespace of `socket`, bound to the interface; it counts only frames
  /// that carry `mark`. Needs CAP_NET_RAW.
  static Result<FrameSocket> open(const Socket& socket, int ifindex, std::uint32_t mark);

  /// Counts, and sends, another mark from now on.
  void setMark(std::uint32_t mark) { mark_ = mark; }

  /// Sends one frame of `payload` bytes (at least the mark's four). False when the socket's buffer
  /// is full, i.e. too much is still in the queue.
  Result<bool> send(const MacAddress& destination, std::size_t payload) const;

  /// How many frames with our mark passed this interface in either direction since the last call,
  /// not counting those sent through this very socket.
  Result<int> countPassed() const;

 private:
  FrameSocket(UniqueFd fd, int ifindex, std::uint32_t mark)
      : fd_(std::move(fd)), ifindex_(ifindex), mark_(mark) {}
  UniqueFd fd_;
  int ifindex_;
  std::uint32_t mark_;
};

}  // namespace faultline::netlink

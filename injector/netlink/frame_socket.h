#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "injector/netlink/packet_socket.h"

namespace faultline::netlink {

/// Through which class of a shaper of ours frames go: that of bulk data, as everybody's, or that of
/// control, which overtakes it.
enum class FrameClass { kBulk, kControl };

/// Sends and counts probe frames of our own on one interface, below IP: no address, route or
/// neighbour is needed, and nobody else takes notice of them (local experimental ethertype 0x88B5,
/// IEEE 802). Frames go through the interface's queueing discipline.
class FrameSocket {
 public:
  /// Opens a socket in the namespace of `socket`, bound to the interface; it counts only frames
  /// that carry `mark`. Needs CAP_NET_RAW.
  static Result<FrameSocket> open(const Socket& socket, int ifindex, std::uint32_t mark,
                                  FrameClass frames = FrameClass::kBulk);

  /// Counts, and sends, another mark from now on.
  void setMark(std::uint32_t mark) { mark_ = mark; }

  /// Sends one frame of `payload` bytes (at least the mark's four). False when the socket's buffer
  /// is full, i.e. too much is still in the queue.
  Result<bool> send(const MacAddress& destination, std::size_t payload) const;

  /// How many frames with our mark passed this interface in either direction since the last call,
  /// not counting those sent through this very socket.
  Result<int> countPassed() const;

 private:
  FrameSocket(PacketSocket packets, std::uint32_t mark)
      : packets_(std::move(packets)), mark_(mark) {}
  PacketSocket packets_;
  std::uint32_t mark_;
};

}  // namespace faultline::netlink

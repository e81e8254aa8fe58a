#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "injector/netlink/frame_socket.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// Broadcasts a few probe frames on one interface and counts how many pass others.
class ProbeRound {
 public:
  /// Enough to tell whether anything passes at all.
  static constexpr int kFewFrames = 8;
  /// Bytes behind the Ethernet header: padded to Ethernet's smallest frame.
  static constexpr std::size_t kSmallestPayload = 46;

  /// Opens the sockets. `listeners` are interfaces of the namespace of `listener_socket`.
  static Result<ProbeRound> open(const netlink::LinkEnd& sender, netlink::Socket& listener_socket,
                                 const std::vector<int>& listeners, int frames = kFewFrames,
                                 std::size_t payload = kSmallestPayload);

  /// Begins anew over the same sockets; late frames of before are not counted.
  Status restart();

  /// Sends some of what has not been sent yet (a full queue refuses), and counts what has passed.
  Status step();

  bool allSent() const { return sent_ == frames_; }
  int sent() const { return sent_; }
  /// Frames that have passed listener `index`.
  int passed(std::size_t index) const { return passed_[index]; }
  int passedAnywhere() const;
  /// Of the listener from `first` on that has seen most: others may have lost some to full queues
  /// of their own.
  int passedMost(std::size_t first) const;
  /// Whether every listener has seen some. Not all of them: a full queue on the way may drop one.
  bool passesEverywhere() const;

 private:
  ProbeRound(netlink::FrameSocket sender, std::vector<netlink::FrameSocket> listeners, int frames,
             std::size_t payload)
      : sender_(std::move(sender)),
        listeners_(std::move(listeners)),
        passed_(listeners_.size()),
        frames_(frames),
        payload_(payload) {}

  netlink::FrameSocket sender_;
  std::vector<netlink::FrameSocket> listeners_;
  std::vector<int> passed_;
  int frames_;
  std::size_t payload_;
  int sent_ = 0;
};

}  // namespace faultline::injector

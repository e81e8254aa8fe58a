#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "resilient_ccl/channel/prober.h"

namespace faultline::channel {

/// Whether datagrams that fill a frame come back over a path on which short ones do. Frames above
/// the MTU of a path vanish without a word where its routers, or a switch, say nothing; then every
/// short probe is answered and no payload arrives.
///
/// A full datagram leaves just before the short one of its round, by the same socket. It is lost
/// when a short one that was sent kOrderKept later is answered first: whatever is only slow keeps
/// the two in order. Pure.
class FrameTrial {
 public:
  /// Lost in a row. A queue that is full may refuse a few long datagrams and take short ones.
  static constexpr int kLostToConvict = 5;
  /// Between two of them while a rail is suspected. With kLostToConvict and the longest patience
  /// (100 ms) a verdict takes less than 200 ms.
  static constexpr Duration kPause = 10ms;
  /// Every answer doubles the pause, so often at most: on a slow path full datagrams are a load.
  static constexpr int kMostDoublings = 6;

  /// Nothing is proved yet: the trial begins, or the transport has delivered something.
  void begin(TimePoint now) {
    *this = {};
    latest_ = now;
  }

  Duration pause() const { return kPause * (1 << std::min(answered_, kMostDoublings)); }
  /// Whether another one may go, `pause` after the latest.
  bool due(Duration pause, TimePoint now) const { return !open_ && now - latest_ >= pause; }

  void sent(std::uint32_t round, TimePoint now) {
    open_ = Open{round, now};
    latest_ = now;
  }

  /// Whether it was the answer to the datagram that is awaited.
  bool answered(std::uint32_t round) {
    if (!open_ || open_->round != round) return false;
    open_.reset();
    lost_ = 0;
    ++answered_;
    return true;
  }

  /// A short datagram that was sent at `sentAt` has been answered.
  void shortAnswered(TimePoint sentAt) {
    if (!open_ || sentAt - open_->sentAt < Prober::kOrderKept) return;
    open_.reset();
    ++lost_;
    answered_ = 0;
  }

  bool convicted() const { return lost_ >= kLostToConvict; }
  int answeredInARow() const { return answered_; }

 private:
  struct Open {
    std::uint32_t round;
    TimePoint sentAt;
  };

  std::optional<Open> open_;  // one at a time
  TimePoint latest_{};
  int lost_ = 0;      // in a row
  int answered_ = 0;  // in a row
};

}  // namespace faultline::channel

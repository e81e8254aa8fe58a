#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace faultline::channel {

/// For how long nothing of what the peer has room for has reached it, over whatever rails and
/// however often they came up meanwhile: a rail that opens and carries nothing is no progress.
/// The time in which there was no rail has a budget of its own and does not count, once.
class DeliveryClock {
 public:
  /// The peer has granted a message.
  void begin(TimePoint now) {
    if (messages_++ == 0) restart(now);
  }
  /// A chunk of one has arrived.
  void delivered(TimePoint now) { restart(now); }
  /// All of one has.
  void end() { --messages_; }
  /// There is a rail again; there was none since `noRailSince`.
  void returned(TimePoint noRailSince, TimePoint now) {
    if (messages_ == 0 || excused_) return;
    excused_ = true;
    since_ += now - std::max(since_, noRailSince);
  }
  /// Nothing: nothing is to be delivered, or the time does not count.
  std::optional<TimePoint> waitingSince(bool railUp) const {
    if (messages_ == 0 || (!railUp && !excused_)) return std::nullopt;
    return since_;
  }

 private:
  void restart(TimePoint now) {
    since_ = now;
    excused_ = false;
  }

  std::int64_t messages_ = 0;
  TimePoint since_{};
  bool excused_ = false;
};

}  // namespace faultline::channel

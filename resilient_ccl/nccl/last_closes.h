#pragma once

#include <algorithm>

#include "base/clock.h"

namespace faultline::nccl {

/// How long the last close of a peer may wait for what was copied. What was waited in vain for one
/// peer is taken from those that are closed after it, or a job of which sixty peers stand still
/// would take as often that long to end. Each has a little of its own, in which a peer that listens
/// has everything. Not thread-safe.
class LastCloses {
 public:
  /// `most`: without silent peers, and of all of them together; `least`: what each has.
  LastCloses(Duration most, Duration least) : most_(most), least_(least) {}

  /// Of a close that begins now. One later than `most` after the last that was in vain has nothing
  /// to do with it.
  Duration patience(TimePoint now) {
    if (now - inVainAt_ > most_) inVain_ = Duration::zero();
    return std::max(least_, most_ - inVain_);
  }
  /// A close has waited so long, until now, for a peer that has not got everything.
  void waitedInVain(Duration time, TimePoint now) {
    inVain_ += time;
    inVainAt_ = now;
  }

 private:
  Duration most_;
  Duration least_;
  Duration inVain_{};
  TimePoint inVainAt_{};
};

}  // namespace faultline::nccl

#pragma once

#include <algorithm>

#include "base/clock.h"

namespace faultline::nccl {

/// How long the last close of each peer may wait for what was copied: those that follow each other
/// share a time, or a job of a hundred peers, of which most stand still, would take as often that
/// long to end. Each has a little of its own, in which a peer that listens has everything. Not
/// thread-safe.
class LastCloses {
 public:
  /// `shared`: of all; `own`: the least that each has.
  LastCloses(Duration shared, Duration own) : shared_(shared), own_(own) {}

  /// Until when a close that begins now may wait. Those that begin later than the shared time after
  /// the end of the latest one are others, and share a time anew.
  TimePoint deadline(TimePoint now) {
    if (now > latest_ + shared_) until_ = now + shared_;
    latest_ = std::max(until_, now + own_);
    return latest_;
  }

 private:
  Duration shared_;
  Duration own_;
  TimePoint until_{};
  TimePoint latest_{};  // that was given
};

}  // namespace faultline::nccl

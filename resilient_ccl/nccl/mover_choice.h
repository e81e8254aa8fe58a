#pragma once

#include "base/clock.h"
#include "base/units.h"
#include "resilient_ccl/transport/driven_rail.h"

namespace faultline::nccl {

/// Who moves the bytes between two processes where there are I/O threads. NCCL's own thread, while
/// a single connection has messages, all of them short: nobody has to be woken for them. What is
/// more than that takes the thread longer than waking others does (docs/gpu.md).
class MoverChoice {
 public:
  /// `small`: the longest message that is short.
  explicit MoverChoice(Bytes small) : small_(small) {}

  /// A message of `connection` begins or is done; `size` 0: not known yet.
  void saw(const void* connection, Bytes size, TimePoint now) {
    const bool another = connection != latest_ && now - latestAt_ < kTogether;
    latest_ = connection;
    latestAt_ = now;
    if (another || size > small_) busyUntil_ = now + kCalm;
  }

  transport::Mover at(TimePoint now) const {
    return now < busyUntil_ ? transport::Mover::kThread : transport::Mover::kOwner;
  }

  /// Connections that have messages so close to each other have them at the same time.
  static constexpr Duration kTogether = 200us;
  /// For how long there must be little.
  static constexpr Duration kCalm = 1ms;

 private:
  Bytes small_;
  const void* latest_ = nullptr;
  TimePoint latestAt_{};
  TimePoint busyUntil_{};
};

}  // namespace faultline::nccl

#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "injector/fault_table.h"

namespace faultline::injector {

/// When something that flaps breaks and heals: `count` times (0: without end), each period broken
/// for its `duty`. Pure.
class FlapClock {
 public:
  /// Of a fault with the parameters count, period and duty.
  explicit FlapClock(const FaultParameters& parameters)
      : count_(parameters.get<std::int64_t>("count")),
        broken_time_(duration_cast<Duration>(parameters.get<Duration>("period") *
                                             (parameters.get<Percent>("duty").value / 100))),
        whole_time_(parameters.get<Duration>("period") - broken_time_) {}

  /// No change is due any more, and none was made.
  void restart() {
    due_.reset();
    broken_ = false;
    breaks_ = 0;
  }
  /// The change has just been made. Counted from the true moment on, not from when it was due: a
  /// late step must not shorten a phase.
  void changed(bool broken, TimePoint now) {
    broken_ = broken;
    due_ = now + (broken ? broken_time_ : whole_time_);
    if (broken) ++breaks_;
    if (!broken && count_ != 0 && breaks_ >= count_) due_.reset();
  }
  /// No change is due any more.
  void stop() { due_.reset(); }

  bool due(TimePoint now) const { return due_ && now >= *due_; }
  bool broken() const { return broken_; }
  /// How often it has been broken.
  std::int64_t breaks() const { return breaks_; }

 private:
  std::int64_t count_;
  Duration broken_time_;
  Duration whole_time_;
  bool broken_ = false;
  std::int64_t breaks_ = 0;
  std::optional<TimePoint> due_;  ///< of the next change
};

}  // namespace faultline::injector

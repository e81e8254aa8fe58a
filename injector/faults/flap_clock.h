#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "injector/fault_kind.h"

namespace faultline::injector {

/// When something that flaps breaks and heals. Pure.
///
/// A fault lasts for the half-open interval [0, duration). Outage k begins at k * period if that is
/// inside the interval, and lasts for `duty` of the period. A fault of 1 s with a period of 500 ms
/// therefore has two outages: the third would begin exactly at the end. This is decided by
/// arithmetic before the fault begins, so that a late look at the clock cannot add an outage.
class FlapClock {
 public:
  /// Of a fault with the parameters count, period and duty.
  explicit FlapClock(const FaultParameters& parameters)
      : count_(parameters.get<std::int64_t>("count")),
        period_(parameters.get<Duration>("period")),
        brokenTime_(duration_cast<Duration>(
            period_ * (parameters.get<Percent>("duty").value / kWholeInPercent))) {}

  /// Whether a fault with these parameters flaps.
  static bool drives(const FaultParameters& parameters) {
    return parameters.all().contains("period") && parameters.all().contains("duty");
  }

  /// How long the fault will last; nullopt: nobody knows. To be called before the first outage.
  void lastsFor(std::optional<Duration> duration) { duration_ = duration; }

  /// How many outages there are to be; nullopt: as many as there is time for.
  std::optional<std::int64_t> planned() const {
    const bool limited = count_ != 0;
    if (!duration_) return limited ? std::optional(count_) : std::nullopt;
    const std::int64_t fitting = (*duration_ + period_ - Duration(1)) / period_;
    return limited ? std::min(count_, fitting) : fitting;
  }

  /// No change is due any more, and none was made.
  void restart() {
    due_.reset();
    origin_.reset();
    broken_ = false;
    breaks_ = 0;
  }

  /// The change has just been made. The next one is due where the period says, counted from the
  /// first outage, so that delays do not add up; but half of a phase must be left, so that a late
  /// change does not swallow the phase.
  void changed(bool broken, TimePoint now) {
    if (!origin_) origin_ = now;
    broken_ = broken;
    if (broken) ++breaks_;
    if (!broken && planned() && breaks_ >= *planned()) return stop();
    const TimePoint outage = *origin_ + period_ * (broken ? breaks_ - 1 : breaks_);
    const Duration phase = broken ? brokenTime_ : period_ - brokenTime_;
    due_ = std::max(broken ? outage + brokenTime_ : outage, now + phase / 2);
  }

  /// No change is due any more.
  void stop() { due_.reset(); }

  bool due(TimePoint now) const { return due_ && now >= *due_; }
  bool broken() const { return broken_; }
  /// How often it has been broken.
  std::int64_t breaks() const { return breaks_; }

 private:
  std::int64_t count_;  ///< 0: no limit
  Duration period_;
  Duration brokenTime_;
  std::optional<Duration> duration_;  ///< of the fault
  std::optional<TimePoint> origin_;   ///< the first outage
  bool broken_ = false;
  std::int64_t breaks_ = 0;
  std::optional<TimePoint> due_;  ///< of the next change
};

}  // namespace faultline::injector

#include "harness/site/clock_offset.h"

#include <algorithm>
#include <cmath>

namespace faultline::site {

ClockOffset ClockOffset::same() {
  ClockOffset clock;
  clock.best_ = Estimate{};
  clock.drift_ = 0;
  return clock;
}

void ClockOffset::add(TimePoint asked, TimePoint theirs, TimePoint heard) {
  const Duration half = (heard - asked) / 2;
  const TimePoint middle = asked + half;
  const auto known = at(middle);
  if (known && known->error < half) return;
  // An odd number of nanoseconds has no half.
  best_ = Estimate{theirs - middle, half + Duration(1)};
  bestAt_ = middle;
}

std::optional<ClockOffset::Estimate> ClockOffset::at(TimePoint ours) const {
  if (!best_) return std::nullopt;
  const auto age = static_cast<double>(std::abs((ours - bestAt_).count()));
  return Estimate{best_->offset,
                  best_->error + Duration(static_cast<Duration::rep>(std::ceil(age * drift_)))};
}

TimePoint ClockOffset::ours(TimePoint theirs, TimePoint heard) const {
  return best_ ? std::min(theirs - best_->offset, heard) : heard;
}

}  // namespace faultline::site

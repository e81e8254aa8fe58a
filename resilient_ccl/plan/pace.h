#pragma once

#include <cmath>
#include <cstdint>
#include <map>

#include "base/clock.h"

namespace faultline::plan {

/// Whether planned calls take about as long as their plans said. As long as they do, no port that
/// matters has become slower, whatever single paths look like: what an algorithm asks of a path
/// comes in bursts. Pure.
class Pace {
 public:
  /// Calls within this factor take as long as was predicted.
  static constexpr double kAsPredicted = 1.08;
  /// Time after which a call weighs 1/e.
  static constexpr Duration kMemory = 1s;

  /// A call, named by its number, that should take `predicted` seconds.
  void began(std::uint64_t call, double predicted, TimePoint now) {
    open_[call] = {predicted, now};
  }
  void ended(std::uint64_t call, TimePoint now) {
    const auto open = open_.find(call);
    if (open == open_.end()) return;
    const double kept = std::exp(-toSeconds(now - faded_) / toSeconds(kMemory));
    predicted_ = predicted_ * kept + open->second.predicted;
    taken_ = taken_ * kept + toSeconds(now - open->second.began);
    faded_ = now;
    open_.erase(open);
  }

  /// False also when nothing is known. A call under way counts from when it is late.
  bool asPredicted(TimePoint now) const {
    double predicted = predicted_, taken = taken_;
    for (const auto& [call, open] : open_) {
      const double age = toSeconds(now - open.began);
      if (age <= open.predicted) continue;
      predicted += open.predicted;
      taken += age;
    }
    return predicted > 0 && taken <= kAsPredicted * predicted;
  }

 private:
  struct Open {
    double predicted = 0;
    TimePoint began{};
  };

  std::map<std::uint64_t, Open> open_;
  double predicted_ = 0, taken_ = 0;  // sums over calls, the older the less
  TimePoint faded_{};
};

}  // namespace faultline::plan

#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"

namespace faultline::plan {

/// How long planned calls take, against what their plans said. As long as that is about the same,
/// no port that matters has become slower. Calls that overlap share the network, no matter how:
/// what counts is the time in which any was under way. Pure.
class Pace {
 public:
  /// Calls weigh 1/e after so much time under way.
  static constexpr Duration kMemory = 1s;
  /// Calls that took less than this together say nothing.
  static constexpr Duration kLeast = 250ms;

  /// A call, named by its number, that should take `predicted` seconds.
  void began(std::uint64_t call, double predicted, TimePoint now) {
    if (open_.empty()) {
      since_ = now;
      ended_ = 0;
    }
    open_[call] = predicted;
  }
  void ended(std::uint64_t call, TimePoint now) {
    const auto open = open_.find(call);
    if (open == open_.end()) return;
    ended_ += open->second;
    open_.erase(open);
    if (open_.empty()) {
      sums_ = sums_.with(ended_, toSeconds(now - since_));
    } else if (now - since_ >= kMemory) {
      // There may always be one under way. As good a guess as any: they are half done.
      const double half = openPredicted() / 2;
      sums_ = sums_.with(ended_ + half, toSeconds(now - since_));
      since_ = now;
      ended_ = -half;
    }
  }

  /// Time taken over time predicted, by the calls of about the last second of calls; those under
  /// way count from when they are late. Nothing when too little is known.
  std::optional<double> lateness(TimePoint now) const {
    Sums sums = sums_;
    if (!open_.empty()) {
      const double predicted = ended_ + openPredicted(), taken = toSeconds(now - since_);
      if (taken > predicted) sums = sums.with(predicted, taken);
    }
    if (sums.taken < toSeconds(kLeast)) return std::nullopt;
    return sums.taken / sums.predicted;
  }

  /// What was predicted so far is worth nothing any more.
  void forget() {
    open_.clear();
    sums_ = {};
  }

 private:
  /// In seconds; the older the less.
  struct Sums {
    double predicted = 0, taken = 0;

    Sums with(double morePredicted, double moreTaken) const {
      const double kept = std::exp(-moreTaken / toSeconds(kMemory));
      return {predicted * kept + morePredicted, taken * kept + moreTaken};
    }
  };

  double openPredicted() const {
    double sum = 0;
    for (const auto& [call, predicted] : open_) sum += predicted;
    return sum;
  }

  std::map<std::uint64_t, double> open_;  // calls under way: predicted
  TimePoint since_{};                     // there has been one under way
  double ended_ = 0;                      // predicted, of those that ended since
  Sums sums_;
};

}  // namespace faultline::plan

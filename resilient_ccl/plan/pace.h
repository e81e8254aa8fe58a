#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"

namespace faultline::plan {

/// How long planned calls take, against what their plans said. As long as that is about the same,
/// no port that matters has become slower. Pure.
class Pace {
 public:
  /// Time after which a call weighs 1/e.
  static constexpr Duration kMemory = 1s;
  /// Calls that should take less than this together say nothing.
  static constexpr Duration kLeast = 50ms;

  /// A call, named by its number, that should take `predicted` seconds.
  void began(std::uint64_t call, double predicted, TimePoint now) {
    open_[call] = {predicted, now};
  }
  /// Calls that overlap share the network: what counts is the time since the one before.
  void ended(std::uint64_t call, TimePoint now) {
    const auto open = open_.find(call);
    if (open == open_.end()) return;
    const double kept = std::exp(-toSeconds(now - ended_) / toSeconds(kMemory));
    predicted_ = predicted_ * kept + open->second.predicted;
    taken_ = taken_ * kept + toSeconds(now - std::max(open->second.began, ended_));
    ended_ = now;
    open_.erase(open);
  }

  /// Time taken over time predicted, by calls of about the last second; those under way count from
  /// when they are late. Nothing when too little is known.
  std::optional<double> lateness(TimePoint now) const {
    double predicted = 0;
    TimePoint began = now;
    for (const auto& [call, open] : open_) {
      predicted += open.predicted;
      began = std::min(began, open.began);
    }
    double taken = toSeconds(now - std::max(began, ended_));
    if (taken <= predicted) predicted = taken = 0;
    predicted += predicted_;
    taken += taken_;
    if (predicted < toSeconds(kLeast)) return std::nullopt;
    return taken / predicted;
  }

  /// What was predicted so far is worth nothing any more.
  void forget() {
    open_.clear();
    predicted_ = taken_ = 0;
  }

 private:
  struct Open {
    double predicted = 0;
    TimePoint began{};
  };

  std::map<std::uint64_t, Open> open_;
  double predicted_ = 0, taken_ = 0;  // sums over calls, the older the less
  TimePoint ended_{};                 // of the latest
};

}  // namespace faultline::plan

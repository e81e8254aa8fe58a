#pragma once

#include "base/clock.h"

namespace faultline::channel {

/// Whether a rail that lives is far slower than the others: a gray failure, to be told to people
/// and to those who choose schedules, never a reason to stop. Pure.
class Degradation {
 public:
  /// Below this share of the fastest other rail; a rail at half of its rate is found, and what
  /// rates differ by from one moment to the next is not.
  static constexpr double kShare = 2.0 / 3;
  /// It is over above this share.
  static constexpr double kHealedShare = 0.8;
  /// Observations in a row that say otherwise, over so long a time: many windows.
  static constexpr int kObservations = 8;
  static constexpr Duration kPatience = 250ms;

  /// The rail, which had more than enough to do, carries `rate`, and the fastest of the others
  /// `fastest` (bytes per second). True when the state has changed.
  bool observe(double rate, double fastest, TimePoint now) {
    const bool contrary = degraded_ ? rate > fastest * kHealedShare : rate < fastest * kShare;
    if (!contrary) {
      contrary_ = 0;
      return false;
    }
    if (contrary_++ == 0) since_ = now;
    if (contrary_ < kObservations || now - since_ < kPatience) return false;
    degraded_ = !degraded_;
    contrary_ = 0;
    return true;
  }
  bool degraded() const { return degraded_; }

 private:
  bool degraded_ = false;
  int contrary_ = 0;   // observations that contradict the state, in a row
  TimePoint since_{};  // the first of them
};

}  // namespace faultline::channel

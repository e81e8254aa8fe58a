#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace faultline::plan {

/// Says when the ports are to be tested. Hints may be wrong: slow processors make calls late, too.
/// So each test that changes nothing makes the next one wait longer, and in the long run false
/// hints cost nearly nothing. Pure.
class ProbeTrigger {
 public:
  struct Hints {
    /// Time that calls take over what was predicted (Pace).
    std::optional<double> lateness{};
    bool faster = false;  ///< a port was seen to be faster than it is planned for
    bool slowed = false;  ///< some port is planned for as slow
    /// A port was found to be a little slow, once (PortFindings).
    bool doubted = false;
  };

  /// Calls within this factor take as long as was predicted.
  static constexpr double kLate = 1.08;
  /// So long a port must have been seen to be faster.
  static constexpr Duration kFaster = 200ms;
  /// A slow port is looked at again after so long, without any hint, and after so many pauses.
  static constexpr Duration kAgain = 10s;
  static constexpr int kPausesAgain = 5;
  /// What one test may have been wrong about is looked at again after so long: what disturbs tests
  /// lasts some seconds at most.
  static constexpr Duration kDoubt = 2s;
  /// Pause after a test that changed something, and after one that did not: doubled each time.
  static constexpr Duration kPauseAfterChange = 1s;
  static constexpr Duration kFirstPause = 2s;
  static constexpr Duration kLongestPause = 64s;

  bool due(const Hints& hints, TimePoint now) {
    if (!hints.faster) fasterSince_.reset();
    if (hints.faster && !fasterSince_) fasterSince_ = now;
    lateness_ = hints.lateness.value_or(1);
    if (!tested_) return isHinted(now);
    const Duration since = now - *tested_;
    if (since >= pause_ && isHinted(now)) return true;
    if (hints.doubted && since >= kDoubt) return true;
    if (hints.slowed && since >= std::clamp(kPausesAgain * pause_, kAgain, kLongestPause))
      return true;
    // Later than what a test has found no reason for: something new.
    return since >= kFirstPause && lateness_ > kLate * unexplained_;
  }

  /// A test is over; `changed`: health is another now.
  void tested(bool changed, TimePoint now) {
    tested_ = now;
    fasterSince_.reset();
    if (changed) {
      pause_ = kPauseAfterChange;
      unexplained_ = 1;
      return;
    }
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    unexplained_ = std::max(unexplained_, lateness_);
  }

 private:
  bool isHinted(TimePoint now) const {
    return lateness_ > kLate || (fasterSince_ && now - *fasterSince_ >= kFaster);
  }

  std::optional<TimePoint> tested_;
  std::optional<TimePoint> fasterSince_;
  Duration pause_{};
  double lateness_ = 1;
  double unexplained_ = 1;  // lateness in spite of which tests changed nothing
};

}  // namespace faultline::plan

#pragma once

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "resilient_ccl/plan/health.h"

namespace faultline::plan {

/// Says when the ports have changed for long enough that a new plan is worth its price. Pure: told
/// of every collective, and when it was.
class Hysteresis {
 public:
  /// A port counts as changed when it differs by so much from what the plan was made for.
  static constexpr double kChange = 0.10;
  /// It must have been changed, and about the same, at so many collectives in a row, or for so
  /// long.
  static constexpr int kCollectives = 10;
  static constexpr Duration kTime = 200ms;
  /// So long something that goes on changing may make the new plan wait: one change, not several.
  static constexpr Duration kUnsettled = 1s;

  explicit Hysteresis(HealthVector planned) : planned_(std::move(planned)) {}

  /// Health as measured at a collective. True: plan anew, from this health.
  bool observe(const HealthVector& measured, TimePoint now) {
    if (alike(planned_, measured)) {
      collectives_ = 0;
      return false;
    }
    if (collectives_ == 0) changedSince_ = now;
    const bool settled = collectives_ > 0 && alike(measured_, measured);
    if (!settled) {
      measured_ = measured;
      since_ = now;
      collectives_ = 0;
    }
    ++collectives_;
    if (now - changedSince_ >= kUnsettled) return true;
    return collectives_ >= kCollectives || now - since_ >= kTime;
  }

  /// What was measured last is not what is planned for.
  bool differs() const { return collectives_ > 0; }

  /// A plan has been made for this health.
  void planned(HealthVector health) {
    planned_ = std::move(health);
    collectives_ = 0;
  }

 private:
  static bool isOther(int before, int after) {
    return std::abs(after - before) > kChange * std::max(before, after);
  }

  static bool alike(const HealthVector& one, const HealthVector& other) {
    return std::ranges::equal(one, other, [](const Health& a, const Health& b) {
      return !isOther(a.send, b.send) && !isOther(a.receive, b.receive);
    });
  }

  HealthVector planned_;
  HealthVector measured_;  // when it last was another
  int collectives_ = 0;    // in a row at which it was about that
  TimePoint since_{};      // of the first of them
  TimePoint changedSince_{};
};

}  // namespace faultline::plan

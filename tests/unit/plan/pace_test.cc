#include "resilient_ccl/plan/pace.h"

#include <gtest/gtest.h>

namespace faultline::plan {
namespace {

constexpr TimePoint kEpoch{100s};

TEST(PaceTest, ItIsTimeTakenOverTimePredicted) {
  Pace pace;
  EXPECT_FALSE(pace.lateness(kEpoch)) << "nothing is known";
  pace.began(1, 0.4, kEpoch);
  EXPECT_FALSE(pace.lateness(kEpoch + 200ms)) << "it is not late";
  pace.ended(1, kEpoch + 420ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 420ms), 1.05, 0.001);
  pace.began(2, 0.4, kEpoch + 10s);
  pace.ended(2, kEpoch + 10s + 800ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 20s), 1.7055, 0.001) << "the older one weighs less";
  pace.forget();
  EXPECT_FALSE(pace.lateness(kEpoch + 20s));
}

TEST(PaceTest, ACallUnderWayCountsFromWhenItIsLate) {
  Pace pace;
  pace.began(1, 0.4, kEpoch);
  pace.ended(1, kEpoch + 400ms);
  pace.began(2, 0.4, kEpoch + 500ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 890ms), 1, 0.001);
  EXPECT_GT(*pace.lateness(kEpoch + 1000ms), 1.1);
  EXPECT_GT(*pace.lateness(kEpoch + 1300ms), 1.5);
}

// Two at a time. Each alone may take most of it, or half.
TEST(PaceTest, CallsThatOverlapShareTheNetworkHoweverTheyDo) {
  for (const Duration first : {100ms, 250ms, 400ms}) {
    Pace pace;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const TimePoint time = kEpoch + static_cast<int>(i) * 500ms;
      pace.began(2 * i, 0.2, time);
      pace.began(2 * i + 1, 0.2, time + 10ms);
      pace.ended(2 * i, time + first);
      if (i > 0) {
        EXPECT_NEAR(*pace.lateness(time + first), 1, 0.001);
      }
      pace.ended(2 * i + 1, time + 400ms);
      EXPECT_NEAR(*pace.lateness(time + 450ms), 1, 0.001);
    }
  }
}

TEST(PaceTest, ThereMayAlwaysBeACallUnderWay) {
  Pace pace;
  TimePoint time = kEpoch;
  std::uint64_t call = 0;
  const auto run = [&](Duration each) {
    double sum = 0;
    for (int i = 0; i < 50; ++i) {
      pace.began(call + 1, 0.1, time);
      time += each;
      pace.ended(call++, time);
      sum += pace.lateness(time).value_or(1);
    }
    return sum / 50;
  };
  pace.began(0, 0.1, time);
  EXPECT_NEAR(run(100ms), 1, 0.05);
  EXPECT_NEAR(run(150ms), 1.45, 0.1);
}

TEST(PaceTest, LongCallsCountMost) {
  Pace pace;
  pace.began(2, 0.4, kEpoch);
  pace.ended(2, kEpoch + 400ms);
  pace.began(3, 0.0001, kEpoch + 500ms);
  pace.ended(3, kEpoch + 501ms);
  EXPECT_LT(*pace.lateness(kEpoch + 501ms), 1.02) << "a small call, ten times as long";
  pace.ended(99, kEpoch + 600ms);  // never began
}

TEST(PaceTest, AFewShortCallsSayNothing) {
  Pace pace;
  for (std::uint64_t i = 0; i < 4; ++i) {
    pace.began(i, 0.01, kEpoch + static_cast<int>(i) * 60ms);
    pace.ended(i, kEpoch + static_cast<int>(i + 1) * 60ms);
  }
  EXPECT_FALSE(pace.lateness(kEpoch + 240ms));
  pace.began(9, 0.01, kEpoch + 240ms);
  pace.ended(9, kEpoch + 300ms);
  EXPECT_NEAR(pace.lateness(kEpoch + 300ms).value_or(0), 6, 0.001);
}

}  // namespace
}  // namespace faultline::plan

#include "resilient_ccl/plan/pace.h"

#include <gtest/gtest.h>

namespace faultline::plan {
namespace {

constexpr TimePoint kEpoch{100s};

TEST(PaceTest, ItIsTimeTakenOverTimePredicted) {
  Pace pace;
  EXPECT_FALSE(pace.lateness(kEpoch)) << "nothing is known";
  pace.began(1, 0.1, kEpoch);
  EXPECT_FALSE(pace.lateness(kEpoch + 50ms));
  pace.ended(1, kEpoch + 105ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 105ms), 1.05, 0.001);
  pace.began(2, 0.1, kEpoch + 105ms);
  pace.ended(2, kEpoch + 300ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 300ms), 1.544, 0.002) << "the older one weighs less";
  pace.forget();
  EXPECT_FALSE(pace.lateness(kEpoch + 300ms));
}

TEST(PaceTest, ACallUnderWayCountsFromWhenItIsLate) {
  Pace pace;
  pace.began(1, 0.1, kEpoch);
  pace.ended(1, kEpoch + 100ms);
  pace.began(2, 0.1, kEpoch + 100ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 199ms), 1, 0.001);
  EXPECT_NEAR(*pace.lateness(kEpoch + 220ms), 1.1, 0.01) << "20 ms late in two calls";
  EXPECT_NEAR(*pace.lateness(kEpoch + 400ms), 2, 0.01);
}

// Two at a time, each of which takes twice as long as it would alone.
TEST(PaceTest, CallsThatOverlapShareTheNetwork) {
  Pace pace;
  for (std::uint64_t i = 0; i < 10; ++i) {
    const TimePoint time = kEpoch + static_cast<int>(i) * 200ms;
    pace.began(2 * i, 0.1, time);
    pace.began(2 * i + 1, 0.1, time);
    if (i > 0) {
      EXPECT_NEAR(*pace.lateness(time + 190ms), 1, 0.01);
    }
    pace.ended(2 * i, time + 190ms);
    pace.ended(2 * i + 1, time + 200ms);
    EXPECT_NEAR(*pace.lateness(time + 200ms), 1, 0.01);
  }
}

TEST(PaceTest, WhatIsLongOverCountsNoMoreAndLongCallsCountMost) {
  Pace pace;
  pace.began(1, 0.1, kEpoch);
  pace.ended(1, kEpoch + 300ms);
  pace.began(2, 0.1, kEpoch + 10s);
  pace.ended(2, kEpoch + 10s + 100ms);
  EXPECT_NEAR(*pace.lateness(kEpoch + 10s + 100ms), 1, 0.001);
  pace.began(3, 0.0001, kEpoch + 10s + 200ms);
  pace.ended(3, kEpoch + 10s + 201ms);
  EXPECT_LT(*pace.lateness(kEpoch + 10s + 201ms), 1.02) << "a small call, ten times as long";
  pace.ended(99, kEpoch + 11s);  // never began
}

TEST(PaceTest, AFewShortCallsSayNothing) {
  Pace pace;
  for (std::uint64_t i = 0; i < 4; ++i) {
    pace.began(i, 0.01, kEpoch);
    pace.ended(i, kEpoch + 50ms);
  }
  EXPECT_FALSE(pace.lateness(kEpoch + 50ms));
}

}  // namespace
}  // namespace faultline::plan

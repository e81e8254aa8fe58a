#include "resilient_ccl/plan/pace.h"

#include <gtest/gtest.h>

namespace faultline::plan {
namespace {

constexpr TimePoint kBegin{100s};

TEST(PaceTest, CallsThatTakeAsLongAsTheyShouldAreAsPredicted) {
  Pace pace;
  EXPECT_FALSE(pace.asPredicted(kBegin)) << "nothing is known";
  pace.began(1, 0.1, kBegin);
  EXPECT_FALSE(pace.asPredicted(kBegin + 50ms));
  pace.ended(1, kBegin + 105ms);
  EXPECT_TRUE(pace.asPredicted(kBegin + 105ms));
  pace.began(2, 0.1, kBegin + 200ms);
  pace.ended(2, kBegin + 350ms);
  EXPECT_FALSE(pace.asPredicted(kBegin + 350ms)) << "half as long again";
}

TEST(PaceTest, ACallUnderWayCountsFromWhenItIsLate) {
  Pace pace;
  pace.began(1, 0.1, kBegin);
  pace.ended(1, kBegin + 100ms);
  pace.began(2, 0.1, kBegin + 100ms);
  EXPECT_TRUE(pace.asPredicted(kBegin + 199ms));
  EXPECT_TRUE(pace.asPredicted(kBegin + 215ms)) << "7 % of two calls";
  EXPECT_FALSE(pace.asPredicted(kBegin + 300ms));
}

TEST(PaceTest, WhatIsLongOverCountsNoMoreAndLongCallsCountMost) {
  Pace pace;
  pace.began(1, 0.1, kBegin);
  pace.ended(1, kBegin + 300ms);
  pace.began(2, 0.1, kBegin + 10s);
  pace.ended(2, kBegin + 10s + 100ms);
  EXPECT_TRUE(pace.asPredicted(kBegin + 10s + 100ms));
  pace.began(3, 0.0001, kBegin + 10s + 200ms);
  pace.ended(3, kBegin + 10s + 201ms);
  EXPECT_TRUE(pace.asPredicted(kBegin + 10s + 201ms)) << "a small call, ten times as long";
  pace.ended(99, kBegin + 11s);  // never began
}

}  // namespace
}  // namespace faultline::plan

#include "resilient_ccl/comm/plan_trials.h"

#include <gtest/gtest.h>

#include <vector>

namespace faultline::comm {
namespace {

constexpr PlanKey kMebiElements{.elements = 1 << 20};

/// Of calls of 164 ms by ring where all is whole, and 170 ms at best with a port at 7/8.
plan::Plan whole(double measured) {
  return {.ring = 0.164 * measured,
          .bound = 0.162 * measured,
          .candidates = {{.algorithm = "ring", .predicted = 0.164 * measured},
                         {.algorithm = "optcc", .predicted = 0.166 * measured}}};
}
plan::Plan degraded(double measured) {
  return {.algorithm = "optcc",
          .ring = 0.190 * measured,
          .bound = 0.170 * measured,
          .candidates = {{.algorithm = "optcc", .segments = 32, .predicted = 0.176 * measured},
                         {.algorithm = "optcc", .segments = 64, .predicted = 0.177 * measured},
                         {.algorithm = "ring", .predicted = 0.179 * measured}}};
}

class PlanTrialsTest : public testing::Test {
 protected:
  /// Calls by the candidate that is in use without any agreement.
  void call(const plan::Plan& plan, double seconds, int times,
            const PlanKey& size = kMebiElements) {
    for (int i = 0; i < times; ++i) {
      trials_.began(operation_, size, plan, Choice{}, time_);
      time_ += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
      trials_.ended(operation_++, time_);
    }
  }
  /// Whether, after a turn of the first candidate at 1.03 of the best possible, another is tried.
  bool triesOthers(double measured) {
    call(degraded(measured), 0.175, 1 + plan::CandidateTrial::kTurn);
    const auto wish = trials_.next(Agreement{});
    return wish && wish->chosen.tried;
  }

  PlanTrials trials_;
  std::uint64_t operation_ = 0;
  TimePoint time_{};
};

TEST_F(PlanTrialsTest, WhatIsNearItsBoundIsKeptThoughTheBandwidthWasMeasuredTooHigh) {
  EXPECT_TRUE(triesOthers(0.94));
  trials_.forget(/*whole=*/false);
  call(whole(0.94), 0.164, 3);
  trials_.forget(/*whole=*/true);
  EXPECT_FALSE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, WhatIsAboveItsBoundDoesNotSeemBelowItWhereTheBandwidthWasMeasuredTooLow) {
  EXPECT_TRUE(triesOthers(1.12));
  trials_.forget(/*whole=*/false);
  call(whole(1.12), 0.164, 3);
  trials_.forget(/*whole=*/true);
  EXPECT_FALSE(triesOthers(1.12));
}

TEST_F(PlanTrialsTest, TheQuickestCallCounts) {
  call(whole(0.94), 0.164, 3);
  call(whole(0.94), 0.3, 2);
  trials_.forget(/*whole=*/true);
  EXPECT_FALSE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, AlsoWhenManyCallsOverAPortThatHasBecomeSlowFollow) {
  call(whole(0.94), 0.164, 3);
  call(whole(0.94), 0.188, 500);  // more than are remembered, and than a minute has
  trials_.forget(/*whole=*/true);
  EXPECT_FALSE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, TheLargestSizeThatTellsSomethingCounts) {
  const PlanKey half{.elements = kMebiElements.elements / 2};
  const PlanKey twice{.elements = kMebiElements.elements * 2};
  call(whole(0.94), 0.19, 3, half);
  call(whole(0.94), 0.164, 3);
  call(whole(0.94), 0.3, 3, twice);  // for another reason
  trials_.forget(/*whole=*/true);
  EXPECT_FALSE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, WhatWasLearntIsNotLearntAgain) {
  for (int i = 0; i < 3; ++i) {
    call(whole(0.9), 0.164, 3);
    trials_.forget(/*whole=*/true);
  }
  EXPECT_FALSE(triesOthers(0.9));
}

TEST_F(PlanTrialsTest, OneCallTellsNothing) {
  call(whole(0.94), 0.164, 2);  // the first of a turn does not count
  trials_.forget(/*whole=*/true);
  EXPECT_TRUE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, CallsOverPortsThatWereNotWholeTellNothing) {
  call(whole(0.94), 0.164, 3);
  trials_.forget(/*whole=*/false);
  EXPECT_TRUE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, CallsThatTakeFarLongerAreSlowForAnotherReason) {
  call(whole(0.94), 0.3, 4);
  trials_.forget(/*whole=*/true);
  EXPECT_TRUE(triesOthers(0.94));
}

TEST_F(PlanTrialsTest, ShortCallsTellNothingOfTheBandwidth) {
  const plan::Plan plan{.ring = 0.0012,
                        .bound = 0.0009,
                        .candidates = {{.algorithm = "ring", .predicted = 0.0011},
                                       {.algorithm = "tree", .predicted = 0.0012}}};
  call(plan, 0.0012, 3);
  trials_.forget(/*whole=*/true);
  EXPECT_TRUE(triesOthers(0.94));
}

}  // namespace
}  // namespace faultline::comm

#include "resilient_ccl/plan/test_trigger.h"

#include <gtest/gtest.h>

namespace faultline::plan {
namespace {

constexpr TimePoint kBegin{100s};
constexpr TestTrigger::Hints kNothing{};
constexpr TestTrigger::Hints kLate{.lateness = 1.3};
constexpr TestTrigger::Hints kSlowed{.lateness = 1.0, .slowed = true};
constexpr TestTrigger::Hints kFaster{.faster = true, .slowed = true};

/// How long after `from` it becomes due, looked at ten times a second; `limit`: not so soon.
Duration dueAfter(TestTrigger& trigger, const TestTrigger::Hints& hints, TimePoint from,
                  Duration limit = 200s) {
  for (Duration after{}; after < limit; after += 100ms) {
    if (trigger.due(hints, from + after)) return after;
  }
  return limit;
}

TEST(TestTriggerTest, OnlyHintsAndSlowPortsCallForATest) {
  TestTrigger trigger;
  EXPECT_EQ(dueAfter(trigger, kNothing, kBegin), 200s);
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.05}, kBegin), 200s);
  EXPECT_EQ(dueAfter(trigger, kLate, kBegin), 0s);
  EXPECT_EQ(dueAfter(trigger, kFaster, kBegin), TestTrigger::kFaster);
}

TEST(TestTriggerTest, EachTestThatChangesNothingMakesTheNextOneWaitTwiceAsLong) {
  TestTrigger trigger;
  TimePoint time = kBegin;
  std::vector<Duration> pauses;
  ASSERT_TRUE(trigger.due(kLate, time));
  for (int i = 0; i < 8; ++i) {
    trigger.tested(false, time);
    pauses.push_back(dueAfter(trigger, kLate, time));
    time += pauses.back();
  }
  EXPECT_EQ(pauses, (std::vector<Duration>{2s, 4s, 8s, 16s, 32s, 64s, 64s, 64s}));
  trigger.tested(true, time);
  EXPECT_EQ(dueAfter(trigger, kLate, time), TestTrigger::kPauseAfterChange);
}

TEST(TestTriggerTest, WhatIsDoubtedIsTestedAgainSoonWithoutAnyHint) {
  for (const bool changed : {true, false}) {
    TestTrigger trigger;
    ASSERT_TRUE(trigger.due(kLate, kBegin));
    trigger.tested(changed, kBegin);
    EXPECT_EQ(dueAfter(trigger, {.doubted = true}, kBegin), TestTrigger::kDoubt);
    EXPECT_EQ(dueAfter(trigger, kSlowed, kBegin), TestTrigger::kAgain);
  }
}

TEST(TestTriggerTest, LaterThanATestHasFoundNoReasonForIsNews) {
  TestTrigger trigger;
  TimePoint time = kBegin;
  for (int i = 0; i < 6; ++i) {
    time += dueAfter(trigger, kLate, time);
    trigger.tested(false, time);
  }
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.35}, time), 64s);
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.5}, time), TestTrigger::kFirstPause);
  trigger.tested(false, time);
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.5}, time), 64s) << "no news any more";
}

TEST(TestTriggerTest, ASlowPortIsLookedAtAgainTheLaterTheOftenerItStayedSo) {
  TestTrigger trigger;
  TimePoint time = kBegin;
  ASSERT_TRUE(trigger.due(kLate, time));
  trigger.tested(true, time);
  std::vector<Duration> pauses;
  for (int i = 0; i < 6; ++i) {
    pauses.push_back(dueAfter(trigger, kSlowed, time));
    time += pauses.back();
    trigger.tested(false, time);
  }
  EXPECT_EQ(pauses, (std::vector<Duration>{10s, 10s, 20s, 40s, 64s, 64s}));
}

TEST(TestTriggerTest, APortThatIsFasterNowAndThenIsNotHealed) {
  TestTrigger trigger;
  for (TimePoint time = kBegin; time < kBegin + 5s; time += 200ms) {
    EXPECT_FALSE(trigger.due(kFaster, time));
    EXPECT_FALSE(trigger.due(kSlowed, time + 100ms));
  }
}

}  // namespace
}  // namespace faultline::plan

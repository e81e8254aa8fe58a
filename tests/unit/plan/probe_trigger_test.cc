#include "resilient_ccl/plan/probe_trigger.h"

#include <gtest/gtest.h>

namespace faultline::plan {
namespace {

constexpr TimePoint kBegin{100s};
constexpr ProbeTrigger::Hints kNothing{};
constexpr ProbeTrigger::Hints kLate{.lateness = 1.3};
constexpr ProbeTrigger::Hints kSlowed{.lateness = 1.0, .slowed = true};
constexpr ProbeTrigger::Hints kFaster{.faster = true, .slowed = true};

/// How long after `from` it becomes due, looked at ten times a second; `limit`: not so soon.
Duration dueAfter(ProbeTrigger& trigger, const ProbeTrigger::Hints& hints, TimePoint from,
                  Duration limit = 200s) {
  for (Duration after{}; after < limit; after += 100ms) {
    if (trigger.due(hints, from + after)) return after;
  }
  return limit;
}

TEST(ProbeTriggerTest, OnlyHintsAndSlowPortsCallForATest) {
  ProbeTrigger trigger;
  EXPECT_EQ(dueAfter(trigger, kNothing, kBegin), 200s);
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.05}, kBegin), 200s);
  EXPECT_EQ(dueAfter(trigger, kLate, kBegin), 0s);
  EXPECT_EQ(dueAfter(trigger, kFaster, kBegin), ProbeTrigger::kFaster);
}

TEST(ProbeTriggerTest, EachTestThatChangesNothingMakesTheNextOneWaitTwiceAsLong) {
  ProbeTrigger trigger;
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
  EXPECT_EQ(dueAfter(trigger, kLate, time), ProbeTrigger::kPauseAfterChange);
}

TEST(ProbeTriggerTest, WhatIsDoubtedIsTestedAgainSoonWithoutAnyHint) {
  for (const bool changed : {true, false}) {
    ProbeTrigger trigger;
    ASSERT_TRUE(trigger.due(kLate, kBegin));
    trigger.tested(changed, kBegin);
    EXPECT_EQ(dueAfter(trigger, {.doubted = true}, kBegin), ProbeTrigger::kDoubt);
    EXPECT_EQ(dueAfter(trigger, kSlowed, kBegin), ProbeTrigger::kAgain);
  }
}

TEST(ProbeTriggerTest, LaterThanATestHasFoundNoReasonForIsNews) {
  ProbeTrigger trigger;
  TimePoint time = kBegin;
  for (int i = 0; i < 6; ++i) {
    time += dueAfter(trigger, kLate, time);
    trigger.tested(false, time);
  }
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.35}, time), 64s);
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.5}, time), ProbeTrigger::kFirstPause);
  trigger.tested(false, time);
  EXPECT_EQ(dueAfter(trigger, {.lateness = 1.5}, time), 64s) << "no news any more";
}

TEST(ProbeTriggerTest, ASlowPortIsLookedAtAgainTheLaterTheOftenerItStayedSo) {
  ProbeTrigger trigger;
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

TEST(ProbeTriggerTest, APortThatIsFasterNowAndThenIsNotHealed) {
  ProbeTrigger trigger;
  for (TimePoint time = kBegin; time < kBegin + 5s; time += 200ms) {
    EXPECT_FALSE(trigger.due(kFaster, time));
    EXPECT_FALSE(trigger.due(kSlowed, time + 100ms));
  }
}

}  // namespace
}  // namespace faultline::plan

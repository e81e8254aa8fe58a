#include "harness/control/timeline.h"

#include <gtest/gtest.h>

#include <optional>

namespace faultline::run {
namespace {

constexpr TimePoint kBegin = TimePoint(100s);

scenario::Fault during(int iteration, double progress) {
  scenario::Fault fault;
  fault.kind = "port_down";
  fault.trigger = scenario::During{iteration, progress};
  return fault;
}

TEST(FaultTriggerTest, AtFiresOnceAtItsTime) {
  scenario::Fault fault;
  fault.trigger = scenario::At{2s};
  FaultTrigger trigger(fault);
  EXPECT_FALSE(trigger.due(kBegin + 10s, 0));  // not started: warm-up does not count
  trigger.started(kBegin);
  EXPECT_FALSE(trigger.due(kBegin + 1999ms, 0));
  EXPECT_TRUE(trigger.due(kBegin + 2s, 0));
  EXPECT_FALSE(trigger.due(kBegin + 3s, 0));
}

TEST(FaultTriggerTest, WhatTheKernelTakesItsTimeForLastsAsLongAsItShould) {
  const FaultTrigger trigger(during(20, 0.5));
  EXPECT_EQ(trigger.lastsFrom(kBegin, 5ms), kBegin);
  EXPECT_EQ(trigger.lastsFrom(kBegin, 233ms), kBegin + 233ms);
  scenario::Fault beforehand;
  beforehand.trigger = scenario::BeforeStart{};
  FaultTrigger early(beforehand);
  EXPECT_EQ(early.lastsFrom(kBegin, 233ms), std::nullopt);
  early.started(kBegin + 1s);
  EXPECT_EQ(early.lastsFrom(kBegin, 233ms), kBegin + 1s);
}

TEST(FaultTriggerTest, DuringFiresAtItsShareOfAWarmupIteration) {
  FaultTrigger trigger(during(20, 0.5));
  for (const std::uint64_t bytes : {900, 1000, 5000}) trigger.warmupIteration(bytes);
  EXPECT_EQ(trigger.bytesPerIteration(), 1000u);
  trigger.started(kBegin);
  trigger.iterationBegan(19, kBegin, kBegin, 10'000);
  EXPECT_FALSE(trigger.due(kBegin, 20'000));
  trigger.iterationBegan(20, kBegin, kBegin, 20'000);
  EXPECT_FALSE(trigger.due(kBegin, 20'499));
  EXPECT_TRUE(trigger.due(kBegin, 20'500));
  EXPECT_DOUBLE_EQ(*trigger.progress(20'500), 0.5);
  trigger.iterationBegan(20, kBegin, kBegin,
                         90'000);  // redone after a restart: does not fire again
  EXPECT_FALSE(trigger.due(kBegin, 90'900));
}

/// A fault that strikes three times, 500 ms apart, in a run whose iterations move 1000 bytes. Times
/// are since the run began.
class RepeatedFaultTest : public ::testing::Test {
 protected:
  void strike(scenario::Fault fault) {
    fault.times = 3;
    fault.every = 500ms;
    trigger_.emplace(fault);
    trigger_->warmupIteration(1000);
    trigger_->started(kBegin);
  }
  void began(int iteration, Duration when, std::uint64_t bytes) {
    began(iteration, when, when, bytes);
  }
  void began(int iteration, Duration when, Duration seen, std::uint64_t bytes) {
    trigger_->iterationBegan(iteration, kBegin + when, kBegin + seen, bytes);
  }
  void ended(int iteration) { trigger_->iterationEnded(iteration, 0); }
  bool due(Duration when, std::uint64_t bytes = 0) { return trigger_->due(kBegin + when, bytes); }

  std::optional<FaultTrigger> trigger_;
};

TEST_F(RepeatedFaultTest, AtIsRepeatedAtEqualDistancesFromTheFirst) {
  scenario::Fault fault;
  fault.trigger = scenario::At{2s};
  strike(fault);
  EXPECT_TRUE(due(2100ms));  // late
  EXPECT_FALSE(due(2499ms));
  EXPECT_TRUE(due(2500ms));
  EXPECT_TRUE(due(3s));
  EXPECT_FALSE(due(60s));
  EXPECT_EQ(trigger_->fired(), 3);
}

TEST_F(RepeatedFaultTest, DuringIsRepeatedInTheFirstIterationThatBeginsAfterItsTime) {
  strike(during(20, 0.5));
  began(20, 1s, 20'000);
  EXPECT_TRUE(due(1100ms, 20'500));
  EXPECT_EQ(trigger_->iteration(), 20);
  began(21, 1599ms, 30'000);  // not yet 500 ms after the first strike
  EXPECT_FALSE(due(1650ms, 31'000));
  began(22, 1600ms, 40'000);
  EXPECT_FALSE(due(1700ms, 40'499));
  EXPECT_TRUE(due(1700ms, 40'500));
  EXPECT_EQ(trigger_->iteration(), 22);
  EXPECT_DOUBLE_EQ(*trigger_->progress(40'500), 0.5);
  began(23, 2099ms, 50'000);
  EXPECT_FALSE(due(2200ms, 51'000)) << "the delay of the second does not count";
  began(24, 2100ms, 60'000);
  EXPECT_TRUE(due(2200ms, 60'500));
  began(30, 9s, 90'000);
  EXPECT_FALSE(due(9s, 99'000)) << "three times are enough";
}

TEST_F(RepeatedFaultTest, ARepetitionWaitsForAnIterationWhoseBeginIsKnownInTime) {
  strike(during(20, 0.5));
  // The first one is for iteration 20 alone, come what may.
  began(20, 1s, 1100ms, 20'000);
  ended(20);
  EXPECT_TRUE(due(1100ms, 20'500));
  // The watcher was held up: what it counts from here on is the end of 21 and most of 22.
  began(21, 1600ms, 1690ms, 30'900);
  ended(21);
  began(22, 1660ms, 1690ms, 30'900);
  EXPECT_FALSE(due(1700ms, 31'400));
  began(23, 1710ms, 1711ms, 32'000);
  EXPECT_FALSE(due(1720ms, 32'400));
  ended(23);  // it moved less than half of what others move
  EXPECT_FALSE(due(1730ms, 32'600));
  began(24, 1740ms, 1741ms, 33'000);
  EXPECT_TRUE(due(1750ms, 33'500));
  EXPECT_EQ(trigger_->iteration(), 24);
}

TEST_F(RepeatedFaultTest, MomentsAreStruckOneAfterTheOther) {
  scenario::Fault fault;
  fault.trigger = scenario::Moments{{{2s, 100ms}, {2500ms, 300ms}, {9s, 100ms}}};
  strike(fault);
  EXPECT_FALSE(due(1999ms));
  EXPECT_TRUE(due(2100ms));  // late
  EXPECT_FALSE(due(2499ms));
  EXPECT_TRUE(due(2500ms));
  EXPECT_FALSE(due(8s));
  EXPECT_TRUE(due(9s));
  EXPECT_FALSE(due(60s));
}

TEST(FaultTriggerTest, AfterStrikesSoLongAfterTheMarkOfEachStrikeOfAnotherFault) {
  scenario::Fault fault;
  fault.trigger = scenario::After{.delay = 200ms, .mark = scenario::After::Mark::kEnd, .fault = 3};
  fault.times = 2;
  FaultTrigger trigger(fault);
  trigger.started(kBegin);
  ASSERT_TRUE(trigger.awaited());
  EXPECT_EQ(trigger.awaited()->after.fault, 3);
  EXPECT_EQ(trigger.awaited()->strike, 0u);
  EXPECT_FALSE(trigger.due(kBegin + 60s, 0)) << "it waits for what has not happened";
  trigger.happened(kBegin + 1s);
  EXPECT_FALSE(trigger.awaited());
  EXPECT_FALSE(trigger.due(kBegin + 1199ms, 0));
  EXPECT_TRUE(trigger.due(kBegin + 1200ms, 0));
  ASSERT_TRUE(trigger.awaited());
  EXPECT_EQ(trigger.awaited()->strike, 1u);
  EXPECT_FALSE(trigger.due(kBegin + 60s, 0)) << "what has happened counts once";
  trigger.happened(kBegin + 2s);
  EXPECT_TRUE(trigger.due(kBegin + 2200ms, 0));
  EXPECT_FALSE(trigger.awaited());
  EXPECT_EQ(trigger.fired(), 2);
}

TEST(FaultTriggerTest, TheFirstOfASequenceComesAgainAfterTheLast) {
  scenario::Fault fault;
  fault.trigger = scenario::At{1s};
  fault.times = 2;
  fault.again = scenario::After{.delay = 500ms, .mark = scenario::After::Mark::kEnd, .fault = 7};
  FaultTrigger trigger(fault);
  trigger.started(kBegin);
  EXPECT_FALSE(trigger.awaited());
  EXPECT_TRUE(trigger.due(kBegin + 1s, 0));
  ASSERT_TRUE(trigger.awaited());
  EXPECT_EQ(trigger.awaited()->strike, 0u) << "the end of the last fault's first strike";
  EXPECT_FALSE(trigger.due(kBegin + 60s, 0));
  trigger.happened(kBegin + 3s);
  EXPECT_FALSE(trigger.due(kBegin + 3499ms, 0));
  EXPECT_TRUE(trigger.due(kBegin + 3500ms, 0));
}

TEST(FaultTriggerTest, WithBytesTheFirstOfASequenceComesAgainInTheNextIteration) {
  scenario::Fault fault = during(2, 0.5);
  fault.times = 2;
  fault.again = scenario::After{.delay = 500ms, .mark = scenario::After::Mark::kEnd, .fault = 7};
  FaultTrigger trigger(fault);
  trigger.warmupIteration(1000);
  trigger.started(kBegin);
  trigger.iterationBegan(2, kBegin, kBegin, 0);
  EXPECT_TRUE(trigger.due(kBegin + 10ms, 500));
  trigger.iterationBegan(3, kBegin + 1s, kBegin + 1s, 1000);
  EXPECT_FALSE(trigger.due(kBegin + 1s, 1900)) << "the last has not ended";
  trigger.happened(kBegin + 1s);
  trigger.iterationBegan(4, kBegin + 1499ms, kBegin + 1499ms, 2000);
  EXPECT_FALSE(trigger.due(kBegin + 1500ms, 2900));
  trigger.iterationBegan(5, kBegin + 1500ms, kBegin + 1500ms, 3000);
  EXPECT_FALSE(trigger.due(kBegin + 1510ms, 3499));
  EXPECT_TRUE(trigger.due(kBegin + 1510ms, 3500));
}

TEST(FaultTriggerTest, ARequestThatIsOverTooSoonLeavesItsStrikeToTheNext) {
  // As it was: request 1 has one token, is over at 12 %, and request 2 brings it to 30 %.
  FaultTrigger trigger(during(1, 0.3), FaultTrigger::Likeness::kOwnLengths);
  trigger.warmupIteration(1000);
  trigger.started(kBegin);
  trigger.iterationBegan(0, kBegin, kBegin, 0);
  trigger.iterationBegan(1, kBegin + 1s, kBegin + 1s, 1000);
  EXPECT_FALSE(trigger.due(kBegin + 1050ms, 1120));
  trigger.iterationEnded(0, 1120);  // an older one, under way besides
  EXPECT_TRUE(trigger.tooShort().empty());
  trigger.iterationEnded(1, 1120);
  EXPECT_EQ(trigger.tooShort(), (std::vector<FaultTrigger::TooShort>{{1, 0.12}}));
  EXPECT_FALSE(trigger.due(kBegin + 1100ms, 1400)) << "no request is watched";
  // Known too late: what it has moved is not known.
  trigger.iterationBegan(2, kBegin + 1200ms, kBegin + 1290ms, 1800);
  EXPECT_FALSE(trigger.due(kBegin + 1300ms, 2200));
  trigger.iterationBegan(3, kBegin + 1400ms, kBegin + 1401ms, 2400);
  EXPECT_FALSE(trigger.due(kBegin + 1410ms, 2699));
  EXPECT_TRUE(trigger.due(kBegin + 1410ms, 2700));
  EXPECT_EQ(trigger.iteration(), 3);
  EXPECT_DOUBLE_EQ(*trigger.progress(2700), 0.3);
  trigger.iterationBegan(4, kBegin + 2s, kBegin + 2s, 5000);
  EXPECT_FALSE(trigger.due(kBegin + 2s, 6000)) << "it has struck";
}

TEST(FaultTriggerTest, AmongEqualIterationsTheFirstStrikeIsForItsOwnAlone) {
  FaultTrigger trigger(during(1, 0.3));
  trigger.warmupIteration(1000);
  trigger.started(kBegin);
  trigger.iterationBegan(1, kBegin, kBegin, 0);
  trigger.iterationEnded(1, 290);
  EXPECT_TRUE(trigger.tooShort().empty());
  trigger.iterationBegan(2, kBegin + 1s, kBegin + 1s, 290);
  EXPECT_TRUE(trigger.due(kBegin + 1s, 310));
  EXPECT_EQ(trigger.iteration(), 1) << "a miss: no rank ends it later";
}

TEST(RequestEndsTest, ARequestIsOverWhenTooFewRanksCouldEndItLater) {
  RequestEnds apart(4);  // two ranks prefill, two decode
  EXPECT_FALSE(apart.ended(7, false));
  EXPECT_FALSE(apart.ended(7, false)) << "its keys and values are on their way";
  EXPECT_TRUE(apart.ended(7, false)) << "one rank is left, and two must end it later";
  EXPECT_FALSE(apart.ended(8, false));
  EXPECT_TRUE(apart.ended(8, true)) << "one token: it is not decoded";
  EXPECT_FALSE(apart.ended(9, false));
  apart.restarted();
  EXPECT_FALSE(apart.ended(9, false));
  EXPECT_FALSE(apart.ended(9, false));
  EXPECT_TRUE(RequestEnds(2).ended(0, false));
  EXPECT_TRUE(RequestEnds(1).ended(0, false));
}

TEST(FaultTriggerTest, WithoutWarmupNothingCanBeRelatedToIt) {
  FaultTrigger trigger(during(0, 0.5));
  trigger.started(kBegin);
  trigger.iterationBegan(0, kBegin, kBegin, 0);
  EXPECT_FALSE(trigger.due(kBegin, 1'000'000));
}

TEST(HitProofTest, NeedsAllThreeSigns) {
  const auto proof = [](double progress, bool moved, int laterRanks) {
    HitProof result(20, progress, kBegin, 1000, 4);
    result.othersCounter(moved ? 1001 : 1000);
    for (int rank = 0; rank < laterRanks; ++rank) result.iterationEnded(rank, 20, kBegin + 30ms);
    result.iterationEnded(3, 20, kBegin - 1ms);
    result.iterationEnded(3, 21, kBegin + 60ms);
    return result.ok();
  };
  EXPECT_TRUE(proof(0.5, true, 2));
  EXPECT_FALSE(proof(0.5, true, 1));
  EXPECT_FALSE(proof(0.5, false, 2));
  EXPECT_FALSE(proof(1.02, true, 2));
  EXPECT_FALSE(proof(0, true, 2));
}

TEST(FaultTriggerTest, AfterARestartItsIterationBeginsAgain) {
  FaultTrigger trigger(during(20, 0.5));
  trigger.warmupIteration(1000);
  trigger.started(kBegin);
  trigger.iterationBegan(20, kBegin, kBegin, 20'000);
  trigger.restarted();  // for another fault, before this one was due
  EXPECT_FALSE(trigger.due(kBegin, 60'000)) << "bytes of the iterations that are done again";
  trigger.iterationBegan(20, kBegin, kBegin, 90'000);
  EXPECT_FALSE(trigger.due(kBegin, 90'499));
  EXPECT_TRUE(trigger.due(kBegin, 90'500));
}

}  // namespace
}  // namespace faultline::run

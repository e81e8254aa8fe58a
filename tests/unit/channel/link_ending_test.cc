#include <gtest/gtest.h>

#include <array>

#include "tests/unit/channel/link_fixture.h"

// When there is nothing left to send over: what returns within the budget goes on, the rest is an
// error that names what is broken.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::Link;
using channel::Reach;

class LinkEndingTest : public LinkFixture {};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_P(LinkEndingTest, WhoIsHeardByNobodyIsNamedByWhatOthersSay) {
  for (const Reach reach : {Reach::kUnknown, Reach::kAnswers, Reach::kSilent}) {
    SimWorld world(options());
    bothWays(world, 8 << 20);
    world.run(10ms);
    world.kill(1);
    const Duration budget = options().link.giveUp;
    world.run(budget / 2);
    EXPECT_EQ(world.missed(0), 0);
    world.run(budget * 3 / 10);
    EXPECT_EQ(world.missed(0), 1) << "in time for an answer";
    world.link(0).heardElsewhere(reach);
    world.run(budget / 2);
    EXPECT_EQ(world.missed(0), 1);
    const std::string& why = world.error(0).message();
    EXPECT_EQ(contains(why, "though others hear it"), reach == Reach::kAnswers) << why;
    EXPECT_EQ(contains(why, "gone for all"), reach == Reach::kSilent) << why;
  }
}

TEST_P(LinkEndingTest, WhatIsSaidOfTheRailsOfOneWhoLeftIsNotWaitedFor) {
  SimWorld world(options());
  bothWays(world, 1 << 20);
  ASSERT_TRUE(world.runUntilIdle(2s));
  world.note(0, std::array{std::byte{7}});
  EXPECT_FALSE(world.link(0).told());
  world.run(20ms);
  EXPECT_TRUE(world.link(0).told());
  world.kill(1);
  for (const int rail : {0, 1}) world.portDown(0, rail);
  world.run(50ms);
  EXPECT_EQ(world.link(0).phase(0), Link::Phase::kFencing) << "nobody confirms the fence";
  EXPECT_TRUE(world.error(0).ok());
  EXPECT_TRUE(world.link(0).told());
}

TEST_P(LinkEndingTest, WhoIsShutDownWaitsForNothing) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.runEvent(0, Input::kClient, [&] { world.link(0).shutDown(); });
  world.run(100ms);
  EXPECT_TRUE(world.link(0).busy());
  EXPECT_EQ(world.link(0).nextDeadline(), TimePoint::max());
}

TEST_P(LinkEndingTest, WhoComesBackInTimeIsMissedAndNotGivenUp) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.pause(1, options().link.giveUp * 8 / 10);
  EXPECT_TRUE(world.runUntilIdle(20s));
  EXPECT_EQ(world.missed(0), 1);
  expectClean(world);
}

TEST_P(LinkEndingTest, EverythingDownForAWhileContinuesSoonAfterItsReturn) {
  // No path answers, so nothing is convicted, and both transports back off.
  for (const Duration outage : {60ms, 300ms, 800ms}) {
    SimOptions chosen = options();
    chosen.backsOff = true;
    SimWorld world(chosen);
    bothWays(world, 8 << 20);
    world.run(10ms);
    for (const int rail : {0, 1}) world.blackHole(rail);
    world.managementPath(false);
    const TimePoint fault = world.clock().now();
    world.run(outage);
    world.managementPath(true);
    for (const int rail : {0, 1}) world.heal(rail);
    EXPECT_TRUE(world.runUntilIdle(2s));
    const Duration sending = 80ms;
    EXPECT_LT(world.clock().now() - fault, outage + 50ms + sending);
    expectClean(world);
    EXPECT_GE(world.link(0).counters().stalls + world.link(1).counters().stalls, 1u);
  }
}

TEST_P(LinkEndingTest, AllRailsDownForLessThanTheBudgetContinues) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  world.portDown(0, 1);
  world.run(500ms);
  EXPECT_TRUE(world.error(0).ok());
  world.heal(1);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
}

TEST_P(LinkEndingTest, AllRailsDownForGoodIsAnErrorOnBothEndsThatNamesRailPeerAndReason) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  world.portDown(1, 1);
  const TimePoint fault = world.clock().now();
  EXPECT_FALSE(world.runUntilIdle(10s));
  world.run(100ms);
  EXPECT_LT(world.clock().now() - fault, 1300ms);  // the budget is 1 s
  for (int end = 0; end < 2; ++end) {
    const std::string message = world.error(end).message();
    EXPECT_FALSE(world.error(end).ok());
    EXPECT_NE(message.find(end == 0 ? "rank 1" : "rank 0"), std::string::npos) << message;
    EXPECT_NE(message.find("rail 1"), std::string::npos) << message;
    EXPECT_NE(message.find(end == 0 ? "remote_nic" : "local_nic"), std::string::npos) << message;
  }
}

TEST_P(LinkEndingTest, RailsThatOpenAndCarryNothingAreGivenUpWithinTheBudget) {
  for (const int rails : {1, 2, 4}) {
    for (const Duration longest : {50ms, 10'000ms}) {
      SCOPED_TRACE(::testing::Message() << rails << " rails, " << formatDuration(longest));
      SimOptions chosen = options();
      chosen.link.rails = rails;
      chosen.link.longestHoldOff = longest;
      SimWorld world(chosen);
      bothWays(world, 1 << 20);
      EXPECT_TRUE(world.runUntilIdle(1s));
      for (int rail = 0; rail < rails; ++rail) world.slow(rail, SimWorld::kStuckRate);
      bothWays(world, 1 << 20);
      const TimePoint fault = world.clock().now();
      EXPECT_FALSE(world.runUntilIdle(20s));
      EXPECT_LT(world.clock().now() - fault, chosen.link.giveUp + 1s);
      world.run(100ms);
      for (int end = 0; end < 2; ++end) {
        EXPECT_TRUE(contains(world.error(end).message(), "nothing has been delivered"))
            << world.error(end).message();
      }
    }
  }
}

TEST_P(LinkEndingTest, RailsThatAreResetBeforeTheyDeliverAreGivenUpWithinTheBudget) {
  for (const Duration every : {5ms, 50ms, 300ms}) {
    SCOPED_TRACE(formatDuration(every));
    SimOptions chosen = options();
    chosen.link.longestHoldOff = 50ms;
    SimWorld world(chosen);
    bothWays(world, 1 << 20);
    EXPECT_TRUE(world.runUntilIdle(1s));
    for (const int rail : {0, 1}) world.slow(rail, SimWorld::kStuckRate);
    bothWays(world, 1 << 20);
    const TimePoint fault = world.clock().now();
    const TimePoint limit = fault + chosen.link.giveUp + 1s;
    while (world.error(0).ok() && world.error(1).ok() && world.clock().now() < limit) {
      world.run(every);
      for (const int rail : {0, 1}) world.reset(rail);
    }
    world.run(100ms);
    for (int end = 0; end < 2; ++end) EXPECT_FALSE(world.error(end).ok()) << end;
  }
}

TEST_P(LinkEndingTest, AnOutageWithinTheBudgetLeavesTheRailsAllOfItToDeliver) {
  SimOptions chosen = options();
  SimWorld world(chosen);
  bothWays(world, 1 << 20);
  world.run(5ms);
  const Duration most = chosen.link.giveUp * 9 / 10;
  for (const int rail : {0, 1}) world.portDown(1, rail);
  world.run(most);
  for (const int rail : {0, 1}) world.slow(rail, 64e3);  // some 0.3 s to the first chunks
  for (const int rail : {0, 1}) world.heal(rail);
  world.run(chosen.link.giveUp / 2);
  for (const int rail : {0, 1}) world.slow(rail, 20e6);
  EXPECT_TRUE(world.runUntilIdle(5s)) << world.error(0).message();
  expectClean(world);
}

TEST_P(LinkEndingTest, AMachineThatStoodStillHasSpentNoBudget) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  for (int end = 0; end < 2; ++end) world.pause(end, 3s);  // as a suspended virtual machine
  EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
  expectClean(world);
}

TEST_P(LinkEndingTest, ADeadPeerIsAnErrorWithinTheBudget) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.kill(1);
  EXPECT_FALSE(world.runUntilIdle(10s));
  EXPECT_NE(world.error(0).message().find("has not been heard"), std::string::npos);
}

TEST_P(LinkEndingTest, AProcessWhoseMachineSaysSoIsGoneLongBeforeTheBudget) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.managementPath(false);  // the rails and their datagrams are enough
  world.exit(1);
  world.run(50ms);
  EXPECT_NE(world.error(0).message().find("the process of rank 1 is gone"), std::string::npos)
      << world.error(0).message();
}

TEST_P(LinkEndingTest, AnIdlePeersProcessIsMissedToo) {
  SimWorld world(options());
  world.exit(1);
  world.run(50ms);
  EXPECT_FALSE(world.error(0).ok());
}

TEST_P(LinkEndingTest, AProcessThatIsDoubtedAndAnswersIsNotGone) {
  SimWorld world(options());
  bothWays(world, 8 << 20, 4);
  world.run(10ms);
  world.doubt(0);
  // All rails are reset while the other process stands still, and nobody else can say anything.
  world.pause(1, 500ms);
  for (int rail = 0; rail < 2; ++rail) world.reset(rail);
  EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
  world.run(1s);
  EXPECT_EQ(world.link(0).nextDeadline(), TimePoint::max()) << "the doubt is forgotten";
  expectClean(world);
}

TEST_P(LinkEndingTest, ARefusalAloneIsNoProof) {
  SimWorld world(options());
  bothWays(world, 8 << 20, 4);
  world.run(10ms);
  Link& link = world.link(0);
  link.onRefused(world.clock().now());  // nobody doubts
  EXPECT_FALSE(link.failed());
  link.doubt(world.clock().now());
  link.onRefused(world.clock().now());  // there are rails
  EXPECT_FALSE(link.failed());
  world.run(10ms);  // it has answered
  for (int rail = 0; rail < 2; ++rail) {
    link.onRailFailed(rail, Cause::kLocalNic, world.clock().now());
  }
  link.onRefused(world.clock().now());
  EXPECT_FALSE(link.failed());
  EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
}

TEST_P(LinkEndingTest, WithoutResilienceADeadRailHangs) {
  SimOptions chosen = options();
  chosen.link.resilient = false;
  SimWorld world(chosen);
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_FALSE(world.runUntilIdle(10s));
  EXPECT_TRUE(world.error(0).ok());
  EXPECT_EQ(world.link(0).counters().suspicions, 0u);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
}

TEST_P(LinkEndingTest, WithoutResilienceALostAcknowledgementIsAskedFor) {
  SimOptions chosen = options();
  chosen.link.resilient = false;
  chosen.datagramLoss = 0.3;
  SimWorld world(chosen);
  for (int i = 0; i < 50; ++i) {
    bothWays(world, 1000);
    EXPECT_TRUE(world.runUntilIdle(10s)) << i;
  }
  expectClean(world);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
}

INSTANTIATE_TEST_SUITE_P(Rails, LinkEndingTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

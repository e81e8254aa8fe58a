#include "resilient_ccl/channel/frame_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/channel/link_fixture.h"

// Frames above the MTU of a path are lost, and short datagrams are not.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::FrameTrial;

constexpr Bytes kFrame = 8972;  // of an MTU of 9000
constexpr Bytes kShort = 1472;

TEST(FrameTrialTest, ConvictsWhenShortDatagramsOvertakeFullOnesOften) {
  FrameTrial trial;
  TimePoint time{1s};
  trial.begin(time);
  for (std::uint32_t round = 1; round <= FrameTrial::kLostToConvict; ++round) {
    EXPECT_FALSE(trial.convicted());
    EXPECT_FALSE(trial.due(trial.pause(), time));
    time += FrameTrial::kPause;
    EXPECT_TRUE(trial.due(trial.pause(), time));
    trial.sent(round, time);
    trial.shortAnswered(time);  // that of its own round may have overtaken it
    EXPECT_FALSE(trial.due(0ms, time)) << "it may still come";
    trial.shortAnswered(time + 5ms);
  }
  EXPECT_TRUE(trial.convicted());
  trial.begin(time);
  EXPECT_FALSE(trial.convicted());
}

TEST(FrameTrialTest, OneThatComesBackAcquitsAndMakesTheNextRarer) {
  FrameTrial trial;
  TimePoint time{1s};
  trial.begin(time);
  std::uint32_t round = 0;
  for (int lost = 1; lost < FrameTrial::kLostToConvict; ++lost) {
    trial.sent(++round, time);
    trial.shortAnswered(time + 5ms);
  }
  trial.sent(++round, time);
  trial.answered(round - 1);  // an old one, late: not what is asked
  trial.answered(round);
  EXPECT_EQ(trial.answeredInARow(), 1);
  EXPECT_EQ(trial.pause(), 2 * FrameTrial::kPause);
  trial.sent(++round, time);
  trial.shortAnswered(time + 5ms);
  EXPECT_FALSE(trial.convicted()) << "in a row";
  for (int more = 0; more < 100; ++more) {
    trial.sent(++round, time);
    trial.answered(round);
  }
  EXPECT_LE(trial.pause(), 1s) << "and not for ever";
}

class FrameLossTest : public LinkFixture {
 protected:
  static SimOptions framed() {
    SimOptions chosen = options();
    chosen.frame = kFrame;
    chosen.backsOff = true;
    chosen.link.giveUp = 8s;
    return chosen;
  }
  static SimOptions framedOnOneRail() {
    SimOptions chosen = framed();
    chosen.link.rails = 1;
    return chosen;
  }
  /// From now on, and both ends send.
  static void loseFrames(SimWorld& world) {
    world.run(50ms);
    world.longestFrame(0, kShort);
    bothWays(world, 1 << 20);
  }
};

TEST_P(FrameLossTest, FullFramesThatVanishAreFoundWithin200Milliseconds) {
  for (const auto& [bothWaysLost, refused] :
       {std::pair{true, false}, {false, false}, {true, true}, {false, true}}) {
    SimWorld world(framed());
    world.run(50ms);
    world.longestFrame(0, kShort, true, bothWaysLost);
    world.refusesLongFrames(0, refused);
    const TimePoint begin = world.clock().now();
    bothWays(world, 8 << 20);
    EXPECT_TRUE(world.runUntilIdle(1s));
    ASSERT_EQ(world.failovers(0).size(), 1u);
    const auto& failover = world.failovers(0)[0];
    EXPECT_EQ(failover.cause, Cause::kRail);
    EXPECT_TRUE(failover.stalled);
    EXPECT_EQ(failover.frame, kFrame);
    EXPECT_LT(failover.detected - begin, 200ms);
    ASSERT_EQ(world.failovers(1).size(), 1u);
    EXPECT_EQ(world.failovers(1)[0].frame, kFrame) << "the other end is told";
    expectClean(world);
  }
}

TEST_P(FrameLossTest, ARailThatLosesFramesComesBackWhenItCarriesThem) {
  SimWorld world(framed());
  world.run(50ms);
  world.longestFrame(0, kShort, /*fromEnd0=*/false);
  bothWays(world, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(5s);
  EXPECT_FALSE(world.link(0).railUp(0)) << "short datagrams prove nothing";
  EXPECT_EQ(world.failovers(0).size(), 1u);
  world.longestFrame(0, kFrame);
  world.run(1s);
  EXPECT_TRUE(world.link(0).railUp(0));
  EXPECT_TRUE(world.link(1).railUp(0));
  bothWays(world, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_EQ(world.failovers(0).size(), 1u);
  for (int end = 0; end < 2; ++end) EXPECT_EQ(world.lostFrames(end).size(), 1u) << end;
  expectClean(world);
}

TEST_P(FrameLossTest, WithoutProofTheRailIsTriedAgainAfterTheLongestHoldOff) {
  // As where the other end's frames alone have become shorter: what this end remembers is too long.
  SimWorld world(framed());
  world.run(50ms);
  world.longestFrame(0, kShort);
  bothWays(world, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(world.link(0).options().longestHoldOff + 1s);
  EXPECT_TRUE(world.link(0).railUp(0));
}

TEST_P(FrameLossTest, ASlowRailIsNotGivenUp) {
  // A hundredth of the rate, and less: a chunk takes half a second, and frames come back late.
  for (const double rate : {1e6, 250e3, 128e3}) {
    SimOptions chosen = framed();
    chosen.datagramJitter = 20ms;
    chosen.link.tailBudget = 0;
    SimWorld world(chosen);
    bothWays(world, 4 << 20);
    world.run(10ms);
    world.slow(0, rate);
    world.run(4s);
    EXPECT_EQ(world.link(0).counters().failovers, 0u) << rate;
    EXPECT_EQ(world.link(1).counters().failovers, 0u) << rate;
  }
}

TEST_P(FrameLossTest, LostDatagramsOfAllSizesConvictNoSlowRail) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimOptions chosen = framed();
    chosen.seed = seed;
    chosen.datagramLoss = 0.1;
    chosen.link.tailBudget = 0;
    SimWorld world(chosen);
    bothWays(world, 4 << 20);
    world.run(10ms);
    world.slow(0, 250e3);
    world.run(2s);
    for (int end = 0; end < 2; ++end) {
      for (const auto& failover : world.losses(end)) EXPECT_EQ(failover.frame, 0) << seed;
    }
  }
}

TEST_P(FrameLossTest, TheOnlyRailIsKept) {
  SimWorld world(framedOnOneRail());
  loseFrames(world);
  world.run(1s);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
  for (int end = 0; end < 2; ++end) {
    EXPECT_EQ(world.lostFrames(end), (std::vector<std::pair<int, Bytes>>{{0, kFrame}}))
        << "but its fault is told, once";
  }
  world.longestFrame(0, kFrame);
  EXPECT_TRUE(world.runUntilIdle(4s));
  expectClean(world);
}

TEST_P(FrameLossTest, AJobThatEndsOfThemSaysSo) {
  SimWorld world(framedOnOneRail());
  loseFrames(world);
  world.run(world.link(0).options().giveUp + 2s);
  EXPECT_THAT(world.error(0).message() + world.error(1).message(),
              ::testing::HasSubstr("look at the MTU"));
}

TEST_P(FrameLossTest, AResetThatOvertakesTheWordDoesNotHideTheLostFrames) {
  SimWorld world(framed());
  world.run(50ms);
  world.longestFrame(0, kShort);
  world.message(0, 8 << 20);
  while (world.losses(0).empty() && world.clock().step(TimePoint::max())) {
  }
  world.runEvent(1, Input::kReset,
                 [&] { world.link(1).onRailFailed(0, Cause::kRail, world.clock().now()); });
  ASSERT_EQ(world.losses(1).size(), 1u);
  EXPECT_EQ(world.losses(1)[0].frame, 0) << "not known yet";
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(100ms);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(1)[0].frame, kFrame);
  EXPECT_EQ(world.lostFrames(1), (std::vector<std::pair<int, Bytes>>{{0, kFrame}}));
  expectClean(world);
}

TEST_P(FrameLossTest, TheBeginningOfAFailoverIsToldBeforeWhateverFollows) {
  SimWorld world(framed());
  world.run(50ms);
  world.longestFrame(0, kShort);
  bothWays(world, 8 << 20);
  while (world.losses(0).empty() && world.clock().step(TimePoint::max())) {
  }
  ASSERT_EQ(world.losses(0).size(), 1u);
  EXPECT_EQ(world.losses(0)[0].detected, world.clock().now()) << "at once";
  EXPECT_TRUE(world.failovers(0).empty()) << "what was outstanding is not delivered yet";
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(100ms);
  EXPECT_EQ(world.failovers(0).size(), 1u);
  expectClean(world);
}

INSTANTIATE_TEST_SUITE_P(Rails, FrameLossTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

#include <gtest/gtest.h>

#include "tests/unit/channel/link_fixture.h"

// What a user can set has its effect, each against the default, under the simulated clock.

namespace faultline::test {
namespace {

class LimitsTest : public LinkFixture {
 protected:
  /// Times that a rail comes back that goes down ten times.
  static std::uint64_t returnsOfAFlappingRail(const SimOptions& options) {
    SimWorld world(options);
    for (int flap = 0; flap < 10; ++flap) {
      bothWays(world, 100 << 10);
      world.portDown(0, 0);
      world.run(100ms);
      world.heal(0);
      world.run(400ms);
    }
    EXPECT_TRUE(world.runUntilIdle(10s));
    expectClean(world);
    return world.failbacks(0);
  }

  /// Whether a rail that was a black hole for `outage` carries again so long after its end.
  static bool returns(const SimOptions& options, Duration outage, Duration within) {
    SimWorld world(options);
    bothWays(world, 1 << 20);
    world.run(1ms);
    world.blackHole(1);
    EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
    world.run(outage);
    EXPECT_FALSE(world.link(0).railUp(1));
    world.heal(1);
    world.run(within);
    const bool returned = world.link(0).railUp(1);
    world.run(10min);
    EXPECT_TRUE(world.link(0).railUp(1)) << "never";
    return returned;
  }

  /// Whether a black hole under load is found within this time.
  static bool found(const SimOptions& options, Duration within) {
    SimWorld world(options);
    bothWays(world, 8 << 20);
    world.run(1ms);
    world.blackHole(1);
    world.run(within);
    const bool known = !world.link(0).railUp(1);
    EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
    return known;
  }
};

TEST_P(LimitsTest, HoldOffGrowthAndItsMemory) {
  SimOptions changed = options();
  const std::uint64_t usual = returnsOfAFlappingRail(changed);
  changed.link.holdOffGrowth = 1;
  EXPECT_GT(returnsOfAFlappingRail(changed), 2 * usual);
  changed.link.holdOffGrowth = options().link.holdOffGrowth;
  changed.link.holdOffMemory = 0s;
  EXPECT_GT(returnsOfAFlappingRail(changed), 2 * usual);
}

TEST_P(LimitsTest, LongestPauseBetweenProbesOfADeadRail) {
  SimOptions changed = options();
  EXPECT_TRUE(returns(changed, 2h, 2s));
  changed.link.longestReturnInterval = 5min;
  EXPECT_FALSE(returns(changed, 2h, 2s));
}

TEST_P(LimitsTest, PauseBetweenProbesAndAnswersToReturn) {
  const Duration outage = 200ms;
  SimOptions changed = options();
  EXPECT_TRUE(returns(changed, outage, 70ms));
  changed.link.answersToReturn = 10;
  EXPECT_FALSE(returns(changed, outage, 70ms));
  changed.link.answersToReturn = options().link.answersToReturn;
  changed.link.returnProbeInterval = 50ms;
  EXPECT_FALSE(returns(changed, outage, 70ms));
}

TEST_P(LimitsTest, HoldOff) {
  SimOptions changed = options();
  EXPECT_TRUE(returns(changed, 200ms, 70ms));
  changed.link.holdOff = 800ms;
  EXPECT_FALSE(returns(changed, 200ms, 70ms));
}

TEST_P(LimitsTest, SuspicionAndTheProbesOfATrial) {
  SimOptions changed = options();
  EXPECT_TRUE(found(changed, 80ms));
  changed.link.suspectAfter = 100ms;
  EXPECT_FALSE(found(changed, 80ms));
  changed.link.suspectAfter = options().link.suspectAfter;
  changed.link.suspectProbeInterval = 20ms;
  EXPECT_FALSE(found(changed, 80ms));
}

TEST_P(LimitsTest, ProbesWhileSomethingIsAwaited) {
  const auto probes = [](const SimOptions& options) {
    SimWorld world(options);
    world.run(100ms);  // all paths have carried datagrams
    world.message(0, 1 << 20);
    world.run(1ms);
    world.pause(1, 600ms);
    world.run(600ms);
    const std::uint64_t sent = world.link(0).counters().probesSent;
    EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
    expectClean(world);
    return sent;
  };
  SimOptions changed = options();
  changed.link.suspectAfter = changed.link.giveUp;  // no trials
  const auto usual = probes(changed);
  changed.link.idleProbeInterval = 20ms;
  EXPECT_GT(probes(changed), 3 * usual);
}

TEST_P(LimitsTest, ChunksOfAMessage) {
  for (const Bytes chunk : {16 << 10, 64 << 10, 256 << 10}) {
    SimOptions chosen = options();
    chosen.link.chunkBytes = chunk;
    chosen.link.tailBudget = 0;
    SimWorld world(chosen);
    world.message(0, 1 << 20);
    EXPECT_TRUE(world.runUntilIdle(10s));
    expectClean(world);
    EXPECT_EQ(world.link(0).counters().chunksSent, static_cast<std::uint64_t>((1 << 20) / chunk));
  }
}

INSTANTIATE_TEST_SUITE_P(Rails, LimitsTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

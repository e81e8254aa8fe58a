#include <gtest/gtest.h>

#include "tests/support/sim_world.h"

// A job begins without the rails that do not come up.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::Where;

class StartTest : public ::testing::TestWithParam<channel::Policy> {
 protected:
  static SimOptions options(std::vector<DeadRail> dead) {
    SimOptions options;
    options.link.rails = 3;
    options.link.policy = GetParam();
    options.link.giveUp = 1s;
    options.deadRails = std::move(dead);
    return options;
  }
  /// A reduction's worth of messages in both directions, all of which arrive.
  static void work(SimWorld& world) {
    for (int from = 0; from < 2; ++from) world.message(from, 4 << 20);
    EXPECT_TRUE(world.runUntilIdle(5s)) << world.error(0).message() << world.error(1).message();
    world.checkMemory();
    for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
  }
};

TEST_P(StartTest, AMissingRailIsAFailoverFromTheBeginningAndTheOthersCarryEverything) {
  SimWorld world(options({{.rail = 1}}));
  const TimePoint begin = world.clock().now();
  work(world);
  for (int end = 0; end < 2; ++end) {
    EXPECT_EQ(world.link(end).counters().failovers, 1u);
    ASSERT_EQ(world.failovers(end).size(), 1u);
    const channel::Failover& failover = world.failovers(end)[0];
    EXPECT_EQ(failover.rail, 1);
    EXPECT_EQ(failover.cause, Cause::kPath);
    EXPECT_FALSE(failover.sending || failover.receiving);
    EXPECT_EQ(failover.detected, begin);
    EXPECT_EQ(failover.fenced, begin);
    EXPECT_EQ(failover.redelivered, begin);
    EXPECT_EQ(world.arrivedBytes(end, 1), 0);
    EXPECT_EQ(world.failbacks(end), 0);
  }
}

TEST_P(StartTest, ItIsTakenBackByProbesWhenItComesUp) {
  SimWorld world(options({{.rail = 2}}));
  work(world);
  world.run(500ms);
  const TimePoint healed = world.clock().now();
  world.heal(2);
  const auto isBack = [&] { return world.link(0).railUp(2) && world.link(1).railUp(2); };
  while (!isBack() && world.clock().step(healed + 5s)) {
  }
  // A hundredth of the outage, three answers, and the handshake.
  EXPECT_LT(world.clock().now() - healed, 100ms);
  EXPECT_EQ(world.failbacks(0), 1);
  EXPECT_EQ(world.failbacks(1), 1);
  work(world);
  EXPECT_GT(world.arrivedBytes(1, 2), 0);
  EXPECT_EQ(world.link(0).counters().failovers, 1u);
}

TEST_P(StartTest, WhileItIsDeadNobodyTriesToConnectIt) {
  SimWorld world(options({{.rail = 0}}));
  int attempts = 0;
  world.onRailChange = [&](const RailChange& change) {
    attempts += change.to == channel::Link::Phase::kOpening;
  };
  world.run(3s);
  EXPECT_EQ(attempts, 0);
  EXPECT_GT(world.datagramsSent(0, 0), 20) << "it is probed";
}

TEST_P(StartTest, AMissingPortIsNamedAtBothEnds) {
  SimWorld world(options({{.rail = 1, .port = true, .end = 1}}));
  world.run(10ms);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kLocalNic);
  EXPECT_EQ(world.failovers(1)[0].where, Where::kLocal);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRemoteNic);
  EXPECT_EQ(world.failovers(0)[0].where, Where::kRemote);
  EXPECT_TRUE(world.failovers(0)[0].told);
}

TEST_P(StartTest, WordOfAMissingPortThatComesBeforeTheOwnStartIsKept) {
  SimOptions late = options({{.rail = 1, .port = true, .end = 1}});
  late.lateEnd = 0;
  late.lateStart = 20ms;
  SimWorld world(late);
  world.run(10ms);
  EXPECT_TRUE(world.failovers(0).empty());
  world.run(30ms);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRemoteNic);
  EXPECT_EQ(world.failovers(0)[0].where, Where::kRemote);
  EXPECT_EQ(world.explained(0), 0);
}

TEST_P(StartTest, ARailThatComesUpBeforeTheOtherEndBeginsIsUsedByBoth) {
  SimOptions late = options({{.rail = 1}});
  late.lateEnd = 0;
  late.lateStart = 200ms;
  SimWorld world(late);
  world.heal(1);
  world.run(400ms);
  EXPECT_TRUE(world.link(0).railUp(1) && world.link(1).railUp(1));
  EXPECT_EQ(world.link(0).counters().failovers, 0u) << "it was there when this end began";
  EXPECT_EQ(world.failbacks(0), 0);
  EXPECT_EQ(world.failbacks(1), 1);
  work(world);
}

INSTANTIATE_TEST_SUITE_P(Policies, StartTest,
                         ::testing::Values(channel::Policy::kPinned, channel::Policy::kPull),
                         [](const auto& tested) {
                           return tested.param == channel::Policy::kPull ? "Pull" : "Pinned";
                         });

}  // namespace
}  // namespace faultline::test

#include <gtest/gtest.h>

#include "tests/unit/channel/link_fixture.h"

// Messages arrive, and what a failed rail leaves is repaired: over rails with RDMA's late writes
// and over rails whose receiver places every byte.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::Where;

class LinkTest : public LinkFixture {};

TEST_P(LinkTest, MessagesOfAnySizeArrive) {
  SimWorld world(options());
  for (const Bytes length : {0, 1, 7, 65535, 65536, 65537, 1 << 20}) bothWays(world, length);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
}

TEST_P(LinkTest, OrderOfPostingDoesNotMatter) {
  SimWorld world(options());
  world.message(0, 1 << 20, {.sendDelay = 30ms});
  world.message(0, 1 << 20, {.receiveDelay = 30ms});
  world.message(0, 100, {.sendDelay = 1ms, .receiveDelay = 2ms});
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
}

TEST_P(LinkTest, BothRailsCarryTheirShare) {
  SimWorld world(options());
  const TimePoint begin = world.clock().now();
  bothWays(world, 8 << 20);
  EXPECT_TRUE(world.runUntilIdle(1s));
  // 16 MiB in both directions over two rails of 100 MB/s each: 42 ms each way at best.
  EXPECT_LT(toMilliseconds(world.clock().now() - begin), 60);
  expectClean(world);
}

TEST_P(LinkTest, PortDownMovesTheTrafficAtOnceAndBothEndsKnow) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kLocalNic);
  EXPECT_FALSE(world.failovers(1)[0].told);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRemoteNic);
  EXPECT_EQ(world.failovers(1)[0].where, Where::kLocal);
  EXPECT_EQ(world.failovers(0)[0].where, Where::kRemote);
  EXPECT_TRUE(world.failovers(0)[0].told);
  EXPECT_GT(world.failovers(0)[0].resentBytes, 0);
  for (int end = 0; end < 2; ++end) {
    EXPECT_EQ(world.link(end).counters().bytesResent, world.failovers(end)[0].resentBytes);
  }
  // A window at 100 MB/s, give or take a fifth of the estimate, and one chunk.
  const double window = (128 << 10) + toSeconds(options().link.windowTime) * 100e6;
  EXPECT_LE(static_cast<double>(world.failovers(0)[0].resentBytes), 1.2 * window + (64 << 10));
  // Told, not timed out.
  EXPECT_LT(world.failovers(0)[0].detected - world.failovers(1)[0].detected, 2ms);
}

TEST_P(LinkTest, TheLoadIsWhatWasCarriedAndTheRailsThatAreUp) {
  SimOptions chosen = options();
  chosen.link.tailBudget = 0;  // nothing goes twice
  SimWorld world(chosen);
  const auto load = [&](int end) { return world.link(end).load(world.clock().now()); };
  world.message(0, 4 << 20);
  world.run(10ms);
  EXPECT_GT(load(0).outstanding, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_EQ(load(0).acknowledged, 4 << 20);
  EXPECT_EQ(load(0).outstanding, 0);
  EXPECT_EQ(load(1).acknowledged, 0) << "it has sent nothing";
  EXPECT_EQ(load(1).arrived, 4 << 20);
  for (int end = 0; end < 2; ++end) EXPECT_EQ(load(end).railsUp, 0b11U);
  world.portDown(1, 0);
  world.run(20ms);
  for (int end = 0; end < 2; ++end) EXPECT_EQ(load(end).railsUp, 0b10U);
}

TEST(LinkPauseTest, AReceiveWaitsFromItsBeginAndNotFromItsPost) {
  SimOptions options;
  options.link.rails = 2;
  options.lateWrites = false;  // the header tells that a message has begun
  SimWorld world(options);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 4e6);  // 16 ms for a chunk
  world.message(0, 1 << 20, {.sendDelay = 500ms});
  world.run(510ms);  // in the middle of its first chunks
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_TRUE(world.failovers(1)[0].receiving);
  EXPECT_GT(world.failovers(1)[0].receiveStall, 0ms);
  EXPECT_LT(world.failovers(1)[0].receiveStall, 100ms);
}

TEST_P(LinkTest, ThePeerIsToldBeforeTheFenceIsDone) {
  SimOptions chosen = options();
  chosen.fenceTime = 30ms;
  SimWorld world(chosen);
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  EXPECT_TRUE(world.failovers(0)[0].told);
  EXPECT_LT(world.failovers(0)[0].detected - world.failovers(1)[0].detected, 2ms);
}

TEST_P(LinkTest, ResetIsRepairedWhenBothEndsStartAtOnce) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.reset(1);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRail);
  world.run(200ms);
  EXPECT_EQ(world.failbacks(0), 1);
}

TEST_P(LinkTest, AHealedRailIsTakenBackAndUsed) {
  SimWorld world(options());
  bothWays(world, 4 << 20);
  world.run(10ms);
  world.portDown(0, 1);
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(1500ms);
  EXPECT_FALSE(world.link(0).railUp(1));
  world.heal(1);
  world.run(200ms);
  EXPECT_TRUE(world.link(0).railUp(1));
  EXPECT_TRUE(world.link(1).railUp(1));
  EXPECT_EQ(world.failbacks(0), 1);
  EXPECT_EQ(world.failbacks(1), 1);
  const TimePoint before = world.clock().now();
  bothWays(world, 8 << 20);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_LT(toMilliseconds(world.clock().now() - before), 60);  // needs both rails
  expectClean(world);
}

TEST_P(LinkTest, AFlappingRailIsHeldOffLongerEachTime) {
  SimWorld world(options());
  for (int flap = 0; flap < 10; ++flap) {
    bothWays(world, 100 << 10);
    world.portDown(0, 0);
    world.run(100ms);
    world.heal(0);
    world.run(400ms);
  }
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  EXPECT_GE(world.failbacks(0), 1);
  EXPECT_LE(world.failbacks(0), 3);  // 10 without the hold-off
}

// Whether it is used meanwhile or not.
TEST_P(LinkTest, AFailureIsRememberedForItsTime) {
  for (const bool busy : {false, true}) {
    for (const auto& [pause, heldOff] : {std::pair<Duration, bool>{2500ms, true},
                                         {5500ms, true},
                                         {9500ms, true},
                                         {10500ms, false}}) {
      SCOPED_TRACE(fmt::format("{}, {}", busy ? "busy" : "idle", formatDuration(pause)));
      SimWorld world(options());
      const auto strike = [&] {
        bothWays(world, 1 << 20);
        world.run(2ms);
        world.reset(1);
        world.run(300ms);
      };
      strike();
      ASSERT_TRUE(world.link(0).railUp(1));
      const int steps = static_cast<int>((pause - 300ms) / 100ms);
      for (int step = 0; step < steps; ++step) {
        if (busy) bothWays(world, 100 << 10);
        world.clock().after(100ms, [] {});
        world.run(100ms);
      }
      strike();
      EXPECT_EQ(world.link(0).railUp(1), !heldOff);
      world.run(300ms);
      EXPECT_TRUE(world.link(0).railUp(1)) << "held off for ten times 50 ms";
      EXPECT_TRUE(world.runUntilIdle(1s));
      expectClean(world);
    }
  }
}

TEST_P(LinkTest, NoRailIsHeldOffWhileThereIsNoOther) {
  for (const int rails : {1, 2}) {
    SimOptions chosen = options();
    chosen.link.rails = rails;
    SimWorld world(chosen);
    for (int time = 0; time < 6; ++time) {
      SCOPED_TRACE(fmt::format("{} rails, time {}", rails, time));
      world.message(0, 1 << 20);
      world.run(2ms);
      for (int rail = 0; rail < rails; ++rail) world.reset(rail);
      EXPECT_TRUE(world.runUntilIdle(300ms));
      world.run(400ms);
    }
    expectClean(world);
  }
}

TEST_P(LinkTest, LateWritesOfADeadRailNeverShow) {
  // Chunks that were under way when the rail died land 30 ms later, long after the message has
  // been completed over the other rail and its memory given back. Only the fence stops them.
  SimWorld world(options());
  bothWays(world, 2 << 20, 4);
  world.run(5ms);
  world.lateDelivery(30ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
}

TEST_P(LinkTest, SecondFaultOnTheRailJustChosen) {
  SimWorld world(options(3));
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  world.run(400us);
  world.portDown(0, 1);
  EXPECT_TRUE(world.runUntilIdle(2s));
  expectClean(world);
  EXPECT_EQ(world.failovers(0).size(), 2u);
}

TEST_P(LinkTest, ANoteArrivesOnceWhateverIsLost) {
  SimOptions chosen = options();
  chosen.datagramLoss = 0.3;
  chosen.datagramDuplication = 0.3;
  SimWorld world(chosen);
  world.portDown(0, 0);
  world.blackHole(1);
  const std::array<std::byte, 3> note{std::byte{1}, std::byte{2}, std::byte{3}};
  world.runEvent(0, Input::kClient, [&] { world.link(0).sendNote(note); });
  world.run(500ms);
  ASSERT_EQ(world.notes(1).size(), 1u);
  EXPECT_TRUE(std::ranges::equal(world.notes(1)[0], note));
  EXPECT_TRUE(world.notes(0).empty());
}

TEST_P(LinkTest, RepairWorksWithoutTheManagementNetwork) {
  SimOptions chosen = options();
  chosen.datagramLoss = 0.3;
  SimWorld world(chosen);
  world.managementPath(false);
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(2s));
  expectClean(world);
  EXPECT_EQ(world.failovers(0).size(), 1u);
}

/// Rail 0 comes back after an outage: the accepting end has the new connection, and its answer is
/// still on the way.
void untilOnlyTheAcceptingEndHasRail0(SimWorld& world) {
  world.portDown(1, 0);
  world.run(100ms);
  world.heal(0);
  while (!world.link(1).railUp(0)) ASSERT_TRUE(world.clock().step(TimePoint::max()));
  ASSERT_FALSE(world.link(0).railUp(0));
}

TEST_P(LinkTest, AConnectionThatOnlyOneEndHasIsReplaced) {
  SimWorld world(options());
  ASSERT_NO_FATAL_FAILURE(untilOnlyTheAcceptingEndHasRail0(world));
  // The connecting end drops the attempt, and its reset gets lost.
  world.portDown(0, 0);
  world.run(100ms);
  world.heal(0);
  world.run(1s);
  EXPECT_TRUE(world.link(0).railUp(0));
  EXPECT_TRUE(world.link(1).railUp(0));
  bothWays(world, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
}

TEST_P(LinkTest, AConnectionThatOnlyOneEndHadAndLostIsHeldOffAsAFlap) {
  // Whichever end's port it was: where it was that of the end that connects, the other one learns
  // of it by the next attempt.
  for (const int struck : {0, 1}) {
    SCOPED_TRACE(struck);
    SimWorld world(options());
    ASSERT_NO_FATAL_FAILURE(untilOnlyTheAcceptingEndHasRail0(world));
    world.portDown(struck, 0);
    world.run(50ms);
    world.heal(0);
    world.run(200ms);  // four times the first hold-off, less than half of the second
    EXPECT_FALSE(world.link(0).railUp(0));
    world.run(400ms);
    EXPECT_TRUE(world.link(0).railUp(0));
    EXPECT_TRUE(world.link(1).railUp(0));
    bothWays(world, 1 << 20);
    EXPECT_TRUE(world.runUntilIdle(1s));
    expectClean(world);
  }
}

INSTANTIATE_TEST_SUITE_P(Rails, LinkTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

#include <gtest/gtest.h>

#include "tests/unit/channel/small_chunks.h"

// The last chunks of a rail that is slow, or stands still, go again over a faster one.

namespace faultline::test {
namespace {

/// One message over two rails that were equal and are not any more.
struct Slowed {
  explicit Slowed(const SimOptions& options, double share = 0.01) : world(options) {
    for (int rail = 0; rail < 2; ++rail) world.slow(rail, 10e6);
    load(world, 100ms);
    EXPECT_TRUE(world.runUntilIdle(1s));
    before = world.link(0).counters();
    begin = world.clock().now();
    world.message(0, 256 << 10);
    world.run(1ms);
    world.slow(0, 10e6 * share);
    EXPECT_TRUE(world.runUntilIdle(10s));
    time = world.clock().now() - begin;
    expectWhole(world);
    copied = world.link(0).counters().bytesCopied - before.bytesCopied;
    resent = world.link(0).counters().bytesResent - before.bytesResent;
  }
  SimWorld world;
  channel::LinkCounters before;
  TimePoint begin;
  Duration time;
  Bytes copied, resent;
};

TEST(TailTest, TheLastChunksOfASlowRailGoAgainOverAFasterOne) {
  SimOptions without = pulling(2);
  without.link.tailBudget = 0;
  Slowed waits(without), copies(pulling(2));
  EXPECT_EQ(waits.copied, 0);
  EXPECT_GT(copies.copied, 0);
  EXPECT_LT(copies.time, waits.time / 4);
  EXPECT_EQ(copies.world.link(0).counters().failovers, 0u) << "slow, not dead";
  EXPECT_LE(copies.world.link(1).counters().bytesDuplicate,
            copies.world.link(0).counters().bytesCopied);
  EXPECT_EQ(copies.resent, 0);
}

TEST(TailTest, TheTailBudgetIsNeverExceeded) {
  for (const Bytes budget : {Bytes{0}, kChunk - 1, kChunk, 3 * kChunk + 1}) {
    SimOptions options = pulling(2);
    options.link.tailBudget = budget;
    const Slowed slowed(options);
    EXPECT_LE(slowed.copied, budget);
    EXPECT_EQ(slowed.copied, budget / kChunk * kChunk) << "used as far as it goes";
  }
}

TEST(TailTest, WithABudgetOfAllThatARailMayHoldNobodyWaitsForOneThatStandsStill) {
  // Its path answers: it is not dead, and counts as stuck only after a quarter of the budget.
  const auto waitingAfter100ms = [](Bytes budget) {
    SimOptions options = pulling(2);
    options.link.chunkBytes = options.link.leastPart = 64 << 10;
    options.link.windowTime = 4ms;
    options.link.tailBudget = budget;
    SimWorld world(options);
    for (int rail = 0; rail < 2; ++rail) world.slow(rail, 475e6);
    load(world, 50ms, 8 << 20);
    world.slow(0, SimWorld::kStuckRate);
    world.run(100ms);
    const int waiting = world.posted() - world.completed();
    EXPECT_TRUE(world.runUntilIdle(60s));
    expectWhole(world);
    return waiting;
  };
  EXPECT_GT(waitingAfter100ms(512 << 10), 0);
  EXPECT_EQ(waitingAfter100ms((channel::Receipt::kReach + 1) * (64 << 10)), 0);
}

// Its last chunks are delivered over the other rail, so that no message waits for it.
TEST(TailTest, ARailThatStandsStillIsGivenUpAlsoWhereMessagesComeWithPauses) {
  SimOptions options = pulling(2);
  options.link.chunkBytes = options.link.leastPart = 64 << 10;
  options.link.tailBudget = (channel::Receipt::kReach + 1) * (64 << 10);
  SimWorld world(options);
  world.run(50ms);
  world.slow(0, SimWorld::kStuckRate);
  const auto talk = [&](Duration time) {
    for (const TimePoint end = world.clock().now() + time; world.clock().now() < end;) {
      world.message(0, 256 << 10);
      world.run(20ms);
    }
  };
  talk(world.link(0).options().giveUp / 8);
  EXPECT_EQ(world.link(0).counters().failovers, 0u) << "it may just be slow";
  talk(world.link(0).options().giveUp / 4);
  EXPECT_EQ(world.link(0).counters().failovers, 1u);
  EXPECT_TRUE(world.runUntilIdle(60s));
  expectWhole(world);
}

TEST(TailTest, CopiesAreASmallShareOfWhatIsSent) {
  // Rail 0 gets slow at the end of each of many messages, so that a copy always seems to help.
  SimOptions options = pulling(2);
  options.link.tailBudget = 2 * kChunk;
  SimWorld world(options);
  for (int i = 0; i < 400; ++i) {
    for (int rail = 0; rail < 2; ++rail) world.slow(rail, 1e6);
    world.message(0, 20 * kChunk);
    world.run(70ms);
    world.slow(0, 50e3);
    EXPECT_TRUE(world.runUntilIdle(5s));
  }
  const auto& counters = world.link(0).counters();
  const Bytes share = counters.bytesSent / 64;
  EXPECT_LE(counters.bytesCopied, options.link.tailBudget + share);
  EXPECT_GT(counters.bytesCopied, share / 2) << "what was used up comes back";
  expectWhole(world);
}

TEST(TailTest, CopiesThatComeSecondAreSoonMadeNoMore) {
  // Rail 0 gets slow in each message; as soon as a chunk of it has gone again, it is faster than
  // ever.
  SimOptions options = pulling(2);
  options.link.tailBudget = 16 * kChunk;
  SimWorld world(options);
  const auto& counters = world.link(0).counters();
  int messagesWithCopies = 0;
  for (int i = 0; i < 60; ++i) {
    for (int rail = 0; rail < 2; ++rail) world.slow(rail, 10e6);
    load(world, 50ms, 512 << 10);
    EXPECT_TRUE(world.runUntilIdle(1s));
    const Bytes before = counters.bytesCopied;
    world.message(0, 256 << 10);
    world.run(1ms);
    world.slow(0, 10e6 * 0.01);
    for (int ms = 0; ms < 200 && counters.bytesCopied == before; ++ms) world.run(1ms);
    messagesWithCopies += counters.bytesCopied > before;
    world.slow(0, 1e9);
    EXPECT_TRUE(world.runUntilIdle(5s));
  }
  EXPECT_GT(messagesWithCopies, 0);
  EXPECT_LE(counters.bytesCopied, options.link.tailBudget + counters.bytesSent / 512)
      << messagesWithCopies;
  expectWhole(world);
}

TEST(TailTest, EqualRailsSendNothingTwice) {
  SimWorld world(pulling(3));
  for (int i = 0; i < 40; ++i) {
    world.message(i % 2, 100'000 + 5000 * i);
    EXPECT_TRUE(world.runUntilIdle(1s));
  }
  EXPECT_EQ(world.link(0).counters().chunksCopied + world.link(1).counters().chunksCopied, 0u);
  expectWhole(world);
}

TEST(TailTest, AStoppedPeerIsNoReasonToSendAnythingTwice) {
  // Rail 1 has done its part and is idle when the peer stops; rail 0 has not.
  SimWorld world(pulling(2));
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 10e6);
  load(world, 100ms);
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.message(0, 9 * kChunk);
  world.run(4ms);
  const auto before = world.link(0).counters().chunksCopied;
  world.pause(1, 5s);
  EXPECT_TRUE(world.runUntilIdle(20s));
  EXPECT_EQ(world.link(0).counters().chunksCopied, before);
  expectWhole(world);
}

TEST(TailTest, NoTailOverOrFromARailWithLateWrites) {
  for (const bool mixed : {false, true}) {
    SimOptions options = pulling(2);
    options.lateWrites = true;
    options.mixed = mixed;
    EXPECT_EQ(Slowed(options).copied, 0);
    options.lateWrites = false;
    EXPECT_EQ(Slowed(options).copied > 0, !mixed);
  }
}

TEST(TailTest, AChunkThatHasACopyOnItsWayIsNotResentWhenItsRailFails) {
  SimOptions options = pulling(2);
  SimWorld world(options);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 1e6);
  load(world, 200ms, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(2s));
  world.slow(0, 10e3);
  const auto before = world.link(0).counters();
  world.message(0, 8 * kChunk);
  while (world.link(0).counters().chunksCopied == before.chunksCopied) {
    ASSERT_TRUE(world.clock().step(world.clock().now() + 1s));
  }
  world.portDown(0, 0);  // the copies are on rail 1
  EXPECT_TRUE(world.runUntilIdle(10s));
  const auto& after = world.link(0).counters();
  EXPECT_LT(after.chunksResent - before.chunksResent, 8u);
  EXPECT_EQ(after.chunksSent - before.chunksSent, 8 + (after.chunksResent - before.chunksResent) +
                                                      (after.chunksCopied - before.chunksCopied));
  ASSERT_FALSE(world.failovers(0).empty());
  EXPECT_NE(world.failovers(0)[0].redelivered, TimePoint{});
  expectWhole(world);
}

/// Runs until chunks of a message are under way over rail 0 and, as copies, over rail 1.
void copyATail(SimWorld& world, int chunks) {
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 1e6);
  load(world, 200ms, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(2s));
  world.slow(0, 10e3);
  const auto before = world.link(0).counters().chunksCopied;
  world.message(0, chunks * kChunk);
  while (world.link(0).counters().chunksCopied == before) {
    ASSERT_TRUE(world.clock().step(world.clock().now() + 1s));
  }
}

TEST(TailTest, AFailoverCountsWhatACopyHadDeliveredBeforeTheRail) {
  SimWorld world(pulling(2));
  copyATail(world, 8);
  const Bytes before = world.arrivedBytes(1, 0);
  while (world.arrivedBytes(1, 0) == before) {  // the copies are there long before it
    ASSERT_TRUE(world.clock().step(world.clock().now() + 10s));
  }
  world.reset(0);
  EXPECT_TRUE(world.runUntilIdle(10s));
  world.run(1s);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  EXPECT_EQ(world.failovers(0)[0].duplicateBytes, kChunk);
  EXPECT_EQ(world.failovers(0)[0].duplicateBytes, world.arrivedTwice(0, world.failovers(0)[0]));
  EXPECT_EQ(world.link(1).counters().bytesDuplicate, kChunk);
}

TEST(TailTest, AFailoverCountsTheCopyThatComesAfterTheRailHadDelivered) {
  SimWorld world(pulling(2));
  world.run(100ms);     // all paths have carried datagrams
  copyATail(world, 2);  // rail 1 has nothing else to do
  // From its next piece on the copy is slow, the rail is fast, and no acknowledgement comes.
  world.slow(1, 10e3);
  world.slow(0, 10e6);
  for (int rail = 0; rail < 2; ++rail) world.blackHole(rail, false, true);
  world.managementPath(false);
  world.run(40ms);
  world.reset(0);
  for (int rail = 0; rail < 2; ++rail) world.heal(rail);
  world.managementPath(true);
  world.run(50ms);
  EXPECT_TRUE(world.failovers(0).empty()) << "the copy is still on its way";
  world.run(20s);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  EXPECT_GT(world.failovers(0)[0].duplicateBytes, 0);
  EXPECT_EQ(world.failovers(0)[0].duplicateBytes, world.arrivedTwice(0, world.failovers(0)[0]));
}

}  // namespace
}  // namespace faultline::test

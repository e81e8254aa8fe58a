#include <gtest/gtest.h>

#include <array>

#include "tests/unit/channel/small_chunks.h"

// Rails of different speed: windows by rate, pull in proportion, and tails that go again over a
// faster rail.

namespace faultline::test {
namespace {

using channel::Policy;

SimOptions pulling(int rails) { return smallChunks(rails, Policy::kPull); }

/// Keeps more than all windows waiting for so long.
void load(SimWorld& world, Duration time, Bytes backlog = 4 << 20) {
  constexpr Bytes kMessage = 512 << 10;
  for (const TimePoint end = world.clock().now() + time; world.clock().now() < end;) {
    while ((world.posted() - world.completed()) * kMessage < backlog) world.message(0, kMessage);
    world.run(5ms);
  }
}

TEST(FlowTest, SharesFollowTheRatesOneSecondAfterAnyChange) {
  SimWorld world(pulling(4));
  const std::array<std::array<double, 4>, 3> changes{
      {{10e6, 5e6, 2.5e6, 1e6}, {1e6, 10e6, 10e6, 4e6}, {8e6, 8e6, 0.8e6, 8e6}}};
  for (const auto& rates : changes) {
    for (int rail = 0; rail < 4; ++rail) world.slow(rail, rates[rail]);
    load(world, 1s);
    std::array<Bytes, 4> before;
    for (int rail = 0; rail < 4; ++rail) before[rail] = world.arrivedBytes(1, rail);
    load(world, 1s);
    for (int rail = 0; rail < 4; ++rail) {
      const auto carried = static_cast<double>(world.arrivedBytes(1, rail) - before[rail]);
      EXPECT_NEAR(carried, rates[rail], 0.1 * rates[rail]) << "rail " << rail;
    }
  }
  EXPECT_TRUE(world.runUntilIdle(10s));
  expectWhole(world);
}

TEST(FlowTest, AFirstChoiceIsTakenAsLongAsItIsAboutAsGoodAsAnother) {
  for (const int choice : {0, 1, 2}) {
    SimWorld world(pulling(3));
    constexpr std::array kRates{10e6, 9e6, 10e6};
    for (int rail = 0; rail < 3; ++rail) world.slow(rail, kRates[rail]);
    const auto one = [&] {  // at a time: no rail has anything outstanding
      world.message(0, 1000, {.firstChoice = choice});
      EXPECT_TRUE(world.runUntilIdle(1s));
      world.run(1ms);
    };
    // The rates of rails that carry nothing are old every so often: these are asked, too.
    const auto share = [&] {
      for (int message = 0; message < 100; ++message) one();
      const Bytes before = world.arrivedBytes(1, choice);
      for (int message = 0; message < 400; ++message) one();
      return static_cast<double>(world.arrivedBytes(1, choice) - before) / 400e3;
    };
    EXPECT_GT(share(), 0.9) << choice;
    world.slow(choice, 2e6);
    EXPECT_LT(share(), 0.1) << choice << " is slow: the others are behind it";
    expectWhole(world);
  }
}

TEST(FlowTest, WithLateAcknowledgementsAFirstChoiceIsKeptWhateverTheRatesSeemToBe) {
  SimOptions options = pulling(2);
  options.link.smallMessage = 4 << 10;
  options.link.chunkBytes = options.link.leastPart = 64 << 10;
  SimWorld world(options);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 50e6);
  // Rail 0 has much to do and shows its rate, rail 1 a message every now and then.
  const auto both = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int message = 0; message < 2; ++message) world.message(0, 60'000, {.firstChoice = 0});
      world.message(0, 20'000, {.firstChoice = 1});
      world.run(4ms);
    }
  };
  both(100);
  const Bytes before = world.arrivedBytes(1, 1);
  both(100);
  EXPECT_NEAR(static_cast<double>(world.arrivedBytes(1, 1) - before), 100 * 20e3, 0.1 * 100 * 20e3);
  // It cannot keep up: what it has outstanding is not acknowledged in time.
  world.slow(1, 1e6);
  both(100);
  const Bytes slow = world.arrivedBytes(1, 1);
  both(100);
  EXPECT_LT(static_cast<double>(world.arrivedBytes(1, 1) - slow), 0.5 * 100 * 20e3);
  EXPECT_TRUE(world.runUntilIdle(10s));
  expectWhole(world);
}

TEST(FlowTest, ManyChunksOfAFirstChoiceAreSharedAsEver) {
  SimWorld world(pulling(2));
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 10e6);
  for (int message = 0; message < 64; ++message) world.message(0, 512 << 10, {.firstChoice = 1});
  EXPECT_TRUE(world.runUntilIdle(10s));
  const auto first = static_cast<double>(world.arrivedBytes(1, 1));
  EXPECT_NEAR(first / (64 * 512 << 10), 0.5, 0.05);
  expectWhole(world);
}

TEST(FlowTest, TheWindowIsTwoChunksAndWhatTheRailCarriesInItsTime) {
  for (const Policy policy : {Policy::kPinned, Policy::kPull}) {
    SimOptions options = pulling(1);
    options.link.policy = policy;
    SimWorld world(options);
    for (const double rate : {20e6, 4e6, 40e6}) {
      world.slow(0, rate);
      load(world, 300ms);
      const auto window = static_cast<double>(world.link(0).windowBytes(0));
      const double carried = toSeconds(options.link.windowTime) * rate;
      EXPECT_NEAR(window - 2 * kChunk, carried, 0.2 * carried) << rate;
    }
    EXPECT_TRUE(world.runUntilIdle(10s));
    expectWhole(world);
  }
}

TEST(FlowTest, ARailHasNoMoreOutstandingThanItsWindow) {
  // What is resent when a rail dies is what was outstanding on it.
  SimOptions options = pulling(2);
  SimWorld world(options);
  world.slow(0, 5e6);
  world.slow(1, 5e6);
  load(world, 300ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(10s));
  ASSERT_EQ(world.failovers(0).size(), 1u);
  EXPECT_GT(world.failovers(0)[0].resentBytes, 0);
  const double window = 2 * kChunk + toSeconds(options.link.windowTime) * 5e6;
  EXPECT_LE(static_cast<double>(world.failovers(0)[0].resentBytes), 1.2 * window + kChunk);
  expectWhole(world);
}

// The window is made from the rate, and the rate from what the window lets through: beyond
// windowTime there are two chunks alone, which a fast rail carries in a quarter of a millisecond.
TEST(FlowTest, AFastRailIsFilledIfItsRoundTripIsShorterThanTheWindowTimeAndTwoChunks) {
  constexpr double kRate = 475e6;
  const auto carried = [&](Duration windowTime, Duration latency) {
    SimOptions options = pulling(1);
    options.link.chunkBytes = options.link.leastPart = 64 << 10;
    options.link.windowTime = windowTime;
    options.wireLatency = latency;
    SimWorld world(options);
    world.slow(0, kRate);
    load(world, 40ms, 8 << 20);
    const Bytes before = world.arrivedBytes(1, 0);
    load(world, 40ms, 8 << 20);
    return static_cast<double>(world.arrivedBytes(1, 0) - before) / 0.04 / kRate;
  };
  EXPECT_GT(carried(2ms, 1600us), 0.97);
  EXPECT_LT(carried(2ms, 2100us), 0.9);
  EXPECT_GT(carried(4ms, 2100us), 0.97);
}

TEST(FlowTest, AcknowledgementsTakeTurnsOverTheRailsThatAreUp) {
  // All over one rail, they filled the control class of its port: four rails of 500 Mbit carried
  // 0.7 to 0.95 of four times one, and less the larger their windows were.
  SimWorld world(pulling(4));
  for (int rail = 0; rail < 4; ++rail) world.slow(rail, 10e6);
  const auto measure = [&] {
    std::array<std::int64_t, 5> before;
    for (int path = 0; path < 5; ++path) before[path] = world.datagramsSent(1, path);
    load(world, 500ms);
    std::array<double, 5> shares;
    double sum = 0;
    for (int path = 0; path < 5; ++path) {
      shares[path] = static_cast<double>(world.datagramsSent(1, path) - before[path]);
      sum += shares[path];
    }
    EXPECT_GT(sum, 100);
    for (double& share : shares) share /= sum;
    return shares;
  };
  const auto all = measure();
  for (int rail = 0; rail < 4; ++rail) EXPECT_NEAR(all[rail], 0.25, 0.05) << "rail " << rail;
  world.portDown(1, 2);
  const auto without = measure();
  for (const int rail : {0, 1, 3}) EXPECT_NEAR(without[rail], 1.0 / 3, 0.07) << "rail " << rail;
  EXPECT_TRUE(world.runUntilIdle(10s));
  expectWhole(world);
}

/// One message over two rails that were equal and are not any more.
struct Slowed {
  explicit Slowed(SimOptions options, double share = 0.01) : world(options) {
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

TEST(FlowTest, TheLastChunksOfASlowRailGoAgainOverAFasterOne) {
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

TEST(FlowTest, TheTailBudgetIsNeverExceeded) {
  for (const Bytes budget : {Bytes{0}, kChunk - 1, kChunk, 3 * kChunk + 1}) {
    SimOptions options = pulling(2);
    options.link.tailBudget = budget;
    const Slowed slowed(options);
    EXPECT_LE(slowed.copied, budget);
    EXPECT_EQ(slowed.copied, budget / kChunk * kChunk) << "used as far as it goes";
  }
}

TEST(FlowTest, WithABudgetOfAllThatARailMayHoldNobodyWaitsForOneThatStandsStill) {
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

TEST(FlowTest, CopiesAreASmallShareOfWhatIsSent) {
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

TEST(FlowTest, CopiesThatComeSecondAreSoonMadeNoMore) {
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

TEST(FlowTest, AShortMessageTravelsOnAllRails) {
  SimWorld world(pulling(4));
  for (int rail = 0; rail < 4; ++rail) world.slow(rail, 1e6);
  load(world, 200ms);
  EXPECT_TRUE(world.runUntilIdle(5s));
  std::array<Bytes, 4> before;
  for (int rail = 0; rail < 4; ++rail) before[rail] = world.arrivedBytes(1, rail);
  const TimePoint begin = world.clock().now();
  world.message(0, 2 * kChunk);
  EXPECT_TRUE(world.runUntilIdle(1s));
  const double taken = toSeconds(world.clock().now() - begin);
  for (int rail = 0; rail < 4; ++rail) {
    EXPECT_EQ(world.arrivedBytes(1, rail) - before[rail], kChunk / 2) << "rail " << rail;
  }
  EXPECT_LT(taken, 0.75 * kChunk / 1e6) << "a whole chunk on one rail takes longer";
  expectWhole(world);
}

TEST(FlowTest, ChunksAreAcknowledgedInPairs) {
  SimWorld world(pulling(1));
  constexpr int kChunks = 128;
  world.message(0, kChunks * kChunk);
  EXPECT_TRUE(world.runUntilIdle(1s));
  const auto datagrams = world.link(1).counters().datagramsSent;
  EXPECT_GE(datagrams, kChunks / 2);
  EXPECT_LE(datagrams, kChunks * 5 / 8);  // with the grant, and what else an end says
  expectWhole(world);
}

TEST(FlowTest, AMessageOfOneChunkIsNotAcknowledgedAtOnceButSoon) {
  SimOptions options = pulling(1);
  options.link.smallMessage = kChunk / 8;
  SimWorld world(options);
  world.message(0, kChunk / 2);
  const TimePoint begin = world.clock().now();
  EXPECT_TRUE(world.runUntilIdle(1s));
  const Duration taken = world.clock().now() - begin;
  EXPECT_GE(taken, channel::AcknowledgementPacing::kLateDelay);
  EXPECT_LT(taken, channel::AcknowledgementPacing::kDelay);
  const auto before = world.link(1).counters().datagramsSent;
  constexpr int kMessages = 64;
  for (int i = 0; i < kMessages; ++i) world.message(0, kChunk / 2);
  EXPECT_TRUE(world.runUntilIdle(1s));
  const auto datagrams = world.link(1).counters().datagramsSent - before;
  EXPECT_LE(datagrams, kMessages / 2 + kMessages / 8 + 8) << "in pairs, and grants in eights";
  expectWhole(world);
}

TEST(FlowTest, AChunkAloneIsAcknowledgedBeforeItsRailIsInDoubt) {
  SimOptions options = pulling(2);
  options.link.policy = Policy::kPinned;
  SimWorld world(options);
  world.slow(0, 0.1e6);          // 82 ms for a chunk
  world.message(0, 2 * kChunk);  // one over each rail
  world.run(2 * options.link.suspectAfter);
  EXPECT_EQ(world.link(0).counters().suspicions, 1u) << "of the slow rail alone";
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectWhole(world);
}

TEST(FlowTest, EqualRailsSendNothingTwice) {
  SimWorld world(pulling(3));
  for (int i = 0; i < 40; ++i) {
    world.message(i % 2, 100'000 + 5000 * i);
    EXPECT_TRUE(world.runUntilIdle(1s));
  }
  EXPECT_EQ(world.link(0).counters().chunksCopied + world.link(1).counters().chunksCopied, 0u);
  expectWhole(world);
}

TEST(FlowTest, AStoppedPeerIsNoReasonToSendAnythingTwice) {
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

TEST(FlowTest, AShortQueueIsNotLeftToASlowRail) {
  // A little more than the fast rail's window: the slow one would take forty times as long for one
  // chunk as the fast one for all, and a copy would have to make up for it.
  SimOptions options = pulling(2);
  options.link.tailBudget = 0;
  SimWorld world(options);
  world.slow(0, 10e6);
  world.slow(1, 0.1e6);
  load(world, 500ms);
  EXPECT_TRUE(world.runUntilIdle(5s));
  const Bytes before = world.arrivedBytes(1, 1);
  for (int i = 0; i < 20; ++i) {
    world.message(0, 20 * kChunk);
    EXPECT_TRUE(world.runUntilIdle(5s));
  }
  // Only the chunk that measures the slow rail again every 100 ms and more.
  EXPECT_LE(world.arrivedBytes(1, 1) - before, 10 * kChunk);
  expectWhole(world);
}

TEST(FlowTest, NoTailOverOrFromARailWithLateWrites) {
  for (const bool mixed : {false, true}) {
    SimOptions options = pulling(2);
    options.lateWrites = true;
    options.mixed = mixed;
    EXPECT_EQ(Slowed(options).copied, 0);
    options.lateWrites = false;
    EXPECT_EQ(Slowed(options).copied > 0, !mixed);
  }
}

TEST(FlowTest, AChunkThatHasACopyOnItsWayIsNotResentWhenItsRailFails) {
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

TEST(FlowTest, AFailoverCountsWhatACopyHadDeliveredBeforeTheRail) {
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

TEST(FlowTest, AFailoverCountsTheCopyThatComesAfterTheRailHadDelivered) {
  SimWorld world(pulling(2));
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

TEST(FlowTest, ASlowRailIsAskedAgainAndTakenUpWhenItIsFast) {
  SimWorld world(pulling(2));
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 10e6);
  load(world, 100ms);
  const auto rounds = [&](Duration time) {  // messages too short for a slow rail to be of use
    const Bytes before = world.arrivedBytes(1, 0);
    for (const TimePoint end = world.clock().now() + time; world.clock().now() < end;) {
      world.message(0, 2 * kChunk);
      EXPECT_TRUE(world.runUntilIdle(1s));
    }
    return world.arrivedBytes(1, 0) - before;
  };
  const Bytes fast = rounds(500ms);
  world.slow(0, 0.1e6);
  rounds(500ms);
  EXPECT_LT(rounds(500ms), fast / 10);
  world.slow(0, 10e6);
  rounds(500ms);
  EXPECT_GT(rounds(500ms), fast * 8 / 10);
  expectWhole(world);
}

}  // namespace
}  // namespace faultline::test

#include <gtest/gtest.h>

#include <array>

#include "resilient_ccl/channel/full_rail.h"
#include "tests/unit/channel/small_chunks.h"

// Rails of different speed: windows by rate, and pull in proportion.

namespace faultline::test {
namespace {

using channel::Policy;

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

TEST(FlowTest, WithoutItsFirstChoiceAMessageGoesOverTheNearestPartner) {
  for (const Bytes small : {0, 4 << 10}) {
    SimOptions options = pulling(4);
    options.link.smallMessage = small;
    options.link.partners = {{1, 2, 3}, {3, 2, 0}, {0, 1, 3}, {2, 0, 1}};
    SimWorld world(options);
    for (int rail = 0; rail < 4; ++rail) world.slow(rail, 10e6);
    // The rates of rails that carry nothing are old every so often: these are asked, too.
    const auto share = [&](int rail) {
      const auto send = [&](int messages) {
        for (int message = 0; message < messages; ++message) {
          world.message(0, 1000, {.firstChoice = 1});
          EXPECT_TRUE(world.runUntilIdle(1s));
          world.run(1ms);
        }
      };
      send(100);
      const Bytes before = world.arrivedBytes(1, rail);
      send(400);
      return static_cast<double>(world.arrivedBytes(1, rail) - before) / (400 * 1000);
    };
    EXPECT_GT(share(1), 0.9) << small;
    world.portDown(0, 1);
    world.run(20ms);
    EXPECT_GT(share(3), 0.9) << small;
    world.portDown(0, 3);
    world.run(20ms);
    EXPECT_GT(share(2), 0.9) << small;
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

TEST(FlowTest, WithLateAcknowledgementsABurstIsMoreThanItsFirstChoiceKeepsUpWith) {
  SimOptions options = pulling(2);
  options.link.smallMessage = 4 << 10;
  options.link.chunkBytes = options.link.leastPart = 64 << 10;
  options.link.tailBudget = 0;
  SimWorld world(options);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 50e6);
  load(world, 100ms);
  EXPECT_TRUE(world.runUntilIdle(1s));
  constexpr Bytes kMessage = 60'000;
  std::array<Bytes, 2> before;
  for (int rail = 0; rail < 2; ++rail) before[rail] = world.arrivedBytes(1, rail);
  for (int message = 0; message < 4; ++message) {
    world.message(0, kMessage, {.sendDelay = 5ms, .firstChoice = 0});
  }
  EXPECT_TRUE(world.runUntilIdle(1s));
  for (int rail = 0; rail < 2; ++rail) {
    EXPECT_EQ(world.arrivedBytes(1, rail) - before[rail], 2 * kMessage) << "rail " << rail;
  }
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

TEST(FlowTest, ARailThatComesBackIsTakenForAsFastAsTheOthers) {
  SimWorld world(pulling(2));
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 10e6);
  load(world, 300ms);
  double window = 0, beside = 0;
  world.onRailChange = [&](const RailChange& change) {
    if (change.end != 0 || change.to != channel::Link::Phase::kUp) return;
    window = static_cast<double>(world.link(0).windowBytes(1));
    beside = static_cast<double>(world.link(0).windowBytes(0));
  };
  world.reset(1);
  load(world, 300ms);
  ASSERT_GT(window, 0) << "it has not come back";
  EXPECT_NEAR(window, beside, 0.1 * beside);
  EXPECT_TRUE(world.runUntilIdle(10s));
  expectWhole(world);
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

// A transport keeps its port's queue short by that (transport::Rail::tellRate).
TEST(FlowTest, WhatARailCarriesIsToldWhenItHasBeenFullForLong) {
  constexpr std::array kRates{10e6, 2e6};
  SimWorld world(pulling(2));
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, kRates[rail]);
  for (int burst = 0; burst < 20; ++burst) {  // some 17 ms, of more than both windows
    world.message(0, 200'000);
    world.run(200ms);
  }
  EXPECT_TRUE(world.runUntilIdle(1s));
  for (int rail = 0; rail < 2; ++rail) EXPECT_EQ(world.rateTold(0, rail), 0) << rail;
  load(world, 1s);
  for (int rail = 0; rail < 2; ++rail) {
    EXPECT_NEAR(world.rateTold(0, rail), kRates[rail], 0.2 * kRates[rail]) << rail;
    EXPECT_EQ(world.rateTold(1, rail), 0) << "it sends nothing";
  }
  world.slow(0, 1e6);
  load(world, 3 * channel::FullRail::kMemory);
  EXPECT_NEAR(world.rateTold(0, 0), 1e6, 0.2e6);
  EXPECT_TRUE(world.runUntilIdle(10s));
  world.run(2 * channel::FullRail::kMemory);
  world.message(0, 1000);
  EXPECT_TRUE(world.runUntilIdle(1s));
  for (int rail = 0; rail < 2; ++rail) {
    EXPECT_EQ(world.rateTold(0, rail), channel::FullRail::kNotKnown) << "it may carry more by now";
  }
  expectWhole(world);
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

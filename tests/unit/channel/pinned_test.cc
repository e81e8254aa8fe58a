#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "resilient_ccl/channel/partners.h"
#include "tests/unit/channel/small_chunks.h"

// Rails to which chunks belong: who takes over, in which order, and until when.

namespace faultline::test {
namespace {

SimOptions pinned(int rails) { return smallChunks(rails, channel::Policy::kPinned); }

TEST(PartnersTest, NearestFirstAndThenByNumber) {
  using Partners = std::vector<std::vector<int>>;
  EXPECT_EQ(channel::partnersByNumber(3), (Partners{{1, 2}, {2, 0}, {0, 1}}));
  EXPECT_EQ(channel::partnersByNumber(1), Partners{{}});
  // 0 and 2 on one switch, 1 and 3 on another; 0 and 1 on one socket.
  const Partners distance{{0, 4, 2, 4}, {4, 0, 6, 2}, {2, 6, 0, 6}, {4, 2, 6, 0}};
  EXPECT_EQ(channel::partnersByDistance(distance),
            (Partners{{2, 1, 3}, {3, 0, 2}, {0, 3, 1}, {1, 0, 2}}));
}

TEST(PinnedTest, TheLoadOfAFailedRailGoesToItsFirstPartnerThatLives) {
  SimOptions options = pinned(4);
  options.link.partners = {{2, 3, 1}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
  SimWorld world(options);
  const auto carried = [&] {
    std::array<Bytes, 4> bytes;
    for (int rail = 0; rail < 4; ++rail) bytes[rail] = world.arrivedBytes(1, rail);
    world.message(0, 64 * kChunk);
    EXPECT_TRUE(world.runUntilIdle(1s));
    for (int rail = 0; rail < 4; ++rail) bytes[rail] = world.arrivedBytes(1, rail) - bytes[rail];
    return bytes;
  };
  using Shares = std::array<Bytes, 4>;
  EXPECT_EQ(carried(), (Shares{16 * kChunk, 16 * kChunk, 16 * kChunk, 16 * kChunk}));
  world.portDown(0, 0);
  world.run(20ms);
  EXPECT_EQ(carried(), (Shares{0, 16 * kChunk, 32 * kChunk, 16 * kChunk}));
  world.portDown(0, 2);
  world.run(20ms);
  EXPECT_EQ(carried(), (Shares{0, 32 * kChunk, 0, 32 * kChunk})) << "2 goes to 1, 0 to 3";
  expectWhole(world);
}

TEST(PinnedTest, AFirstChoiceTakesAllOfItsMessageAndHasTheSamePartners) {
  SimOptions options = pinned(3);
  options.link.partners = {{2, 1}, {0, 2}, {1, 0}};
  SimWorld world(options);
  const auto carried = [&] {
    std::array<Bytes, 3> bytes;
    for (int rail = 0; rail < 3; ++rail) bytes[rail] = world.arrivedBytes(1, rail);
    for (int message = 0; message < 4; ++message) {
      world.message(0, 8 * kChunk, {.firstChoice = 2});
    }
    EXPECT_TRUE(world.runUntilIdle(1s));
    for (int rail = 0; rail < 3; ++rail) bytes[rail] = world.arrivedBytes(1, rail) - bytes[rail];
    return bytes;
  };
  using Shares = std::array<Bytes, 3>;
  EXPECT_EQ(carried(), (Shares{0, 0, 32 * kChunk}));
  world.portDown(0, 2);
  world.run(20ms);
  EXPECT_EQ(carried(), (Shares{0, 32 * kChunk, 0}));
  world.heal(2);
  world.run(1s);
  ASSERT_TRUE(world.link(0).railUp(2));
  EXPECT_EQ(carried(), (Shares{0, 0, 32 * kChunk}));
  expectWhole(world);
}

/// Messages of two chunks, one on each of two rails, that take a fifth of a second on both.
SimWorld& backlog(SimWorld& world) {
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 5e6);
  for (int message = 0; message < 128; ++message) world.message(0, 2 * kChunk);
  world.run(20ms);
  return world;
}

TEST(PinnedTest, WhatWaitedForAFailedRailIsNotOvertakenByYoungerMessages) {
  // Behind all that waited for its partner, the older messages came last, and the first receive
  // waited for the whole queue.
  SimWorld world(pinned(2));
  backlog(world).portDown(0, 0);
  ASSERT_TRUE(world.runUntilIdle(5s)) << world.error(0).message();
  EXPECT_EQ(world.failovers(0).size(), 1u);
  EXPECT_LT(world.link(1).counters().longestReceiveStall, 30ms);
  expectWhole(world);
}

TEST(PinnedTest, ARailThatComesBackGetsItsPartOfWhatWaits) {
  SimWorld world(pinned(2));
  backlog(world).portDown(0, 0);
  world.run(20ms);
  world.heal(0);
  while (!world.link(0).railUp(0)) world.run(1ms);
  std::array<Bytes, 2> carried{world.arrivedBytes(1, 0), world.arrivedBytes(1, 1)};
  ASSERT_TRUE(world.runUntilIdle(5s)) << world.error(0).message();
  for (int rail = 0; rail < 2; ++rail) carried[rail] = world.arrivedBytes(1, rail) - carried[rail];
  EXPECT_GT(carried[1], 20 * kChunk) << "nothing waited any more";
  EXPECT_NEAR(static_cast<double>(carried[0]), static_cast<double>(carried[1]),
              0.2 * static_cast<double>(carried[1]));
  expectWhole(world);
}

// A receive that has got something early waits for those before it, which get all there is: no
// stop.
TEST(PinnedTest, AReceiveWaitsFromWhenItIsTheFirst) {
  SimWorld world(pinned(2));
  world.slow(0, 50e6);
  world.slow(1, 5e6);
  for (int message = 0; message < 64; ++message) world.message(0, 2 * kChunk);
  ASSERT_TRUE(world.runUntilIdle(5s)) << world.error(0).message();
  EXPECT_LT(world.link(1).counters().longestReceiveStall, 20ms);  // the first window is guessed
  expectWhole(world);
}

// Two messages on a dead rail, of which the younger one has begun over the other: that the older
// one begins first when they come again ends the wait, and does not make it forgotten.
TEST(PinnedTest, WhatTheFirstHasWaitedCountsAlsoWhenAnOlderOneBegins) {
  SimWorld world(pinned(2));
  world.run(50ms);
  world.message(0, 2 * kChunk);
  world.run(50ms);
  world.message(0, 2 * kChunk);
  world.run(50ms);
  world.blackHole(0);
  world.message(0, 1024);        // on rail 0 alone
  world.message(0, 2 * kChunk);  // on both
  ASSERT_TRUE(world.runUntilIdle(5s)) << world.error(0).message();
  EXPECT_GT(world.link(1).counters().longestReceiveStall, 20ms);
  EXPECT_LT(world.link(1).counters().longestReceiveStall, 50ms);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_TRUE(world.failovers(1).front().receiving);
  EXPECT_GT(world.failovers(1).front().receiveStall, 20ms);
  expectWhole(world);
}

}  // namespace
}  // namespace faultline::test

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/channel/link_fixture.h"

// Hours are cheap under the simulated clock.

namespace faultline::test {
namespace {

using channel::Link;

class LongOutageTest : public LinkFixture {};

TEST_P(LongOutageTest, APathIsProbedOnceASecondForHoursAndTakenBackWhenItAnswers) {
  SimWorld world(options());
  bothWays(world, 1 << 20);
  world.run(1ms);
  world.blackHole(1);
  ASSERT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
  world.run(5h);
  ASSERT_FALSE(world.link(0).railUp(1));

  const std::int64_t before = world.datagramsSent(0, 1);
  world.run(1h);
  const std::int64_t probes = world.datagramsSent(0, 1) - before;
  const std::int64_t expected = 1h / options().link.longestReturnInterval;
  EXPECT_NEAR(static_cast<double>(probes), static_cast<double>(expected), 2);

  world.heal(1);
  world.run(2 * options().link.longestReturnInterval);
  for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.link(end).railUp(1));
  bothWays(world, 1 << 20);
  EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
  expectClean(world);
}

// The end whose port it was asks first; the other end, which is not asked for a second yet, does so
// when it hears that.
TEST_P(LongOutageTest, APortThatComesBackAfterMinutesIsAskedAtOnceByBothEnds) {
  for (const int damaged : {0, 1}) {
    SimWorld world(options());
    world.portDown(damaged, 1);
    world.run(10min + 123ms);
    ASSERT_FALSE(world.link(0).railUp(1));
    world.heal(1);
    world.run((options().link.answersToReturn + 1) * options().link.returnProbeInterval);
    for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.link(end).railUp(1)) << damaged;
    expectClean(world);
  }
}

// Each end's probes come to the other over one of the two, and an answer over neither: a probe that
// comes in is no sign of a return when they come all the time.
TEST_P(LongOutageTest, TwoOppositeLossesDoNotMakeTheEndsAskEachOtherForEver) {
  for (const bool last : {false, true}) {
    SimOptions patient = options();
    patient.link.rails = last ? 2 : 3;
    patient.link.giveUp = 1h;
    SimWorld world(patient);
    world.run(50ms);
    world.blackHole(0, /*fromEnd0=*/true, /*fromEnd1=*/false);
    world.blackHole(1, /*fromEnd0=*/false, /*fromEnd1=*/true);
    bothWays(world, 1 << 20);
    world.run(10min);
    const auto sent = [&](int end) {
      std::int64_t sum = 0;
      for (int path = 0; path <= patient.link.rails; ++path) sum += world.datagramsSent(end, path);
      return sum;
    };
    std::array<std::int64_t, 2> before{sent(0), sent(1)};
    constexpr int kSeconds = 60;
    world.run(kSeconds * 1s);
    // While something is under way all paths are asked every 200 ms, and answer.
    const Duration pace =
        last ? patient.link.idleProbeInterval : patient.link.longestReturnInterval;
    const std::int64_t rounds = kSeconds * 1s / pace;
    for (int end = 0; end < 2; ++end) {
      EXPECT_FALSE(world.link(end).railUp(0) || world.link(end).railUp(1));
      EXPECT_LE(sent(end) - before[end], 2 * rounds * (patient.link.rails + 1)) << end << last;
    }
    for (const int rail : {0, 1}) world.heal(rail);
    EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
    expectClean(world);
  }
}

// What answers is asked every 10 ms, or 2.5 without a rail, to have it back soon; not when it does
// no more. The other rail has no port in the second case, so that nothing else is under way.
TEST_P(LongOutageTest, APathThatAnswersOnceAndDiesAgainIsProbedOnceASecond) {
  for (const bool last : {false, true}) {
    SimWorld world(options());
    if (last) world.portDown(0, 0);
    world.reset(1);
    world.blackHole(1);
    world.run(1h);
    ASSERT_FALSE(world.link(0).railUp(1));
    world.heal(1);
    const auto sent = [&] { return world.datagramsSent(0, 1); };
    const std::int64_t silent = sent();
    const TimePoint healed = world.clock().now();
    while (sent() == silent && world.clock().step(healed + 5s)) {
    }
    world.run(1500us);  // there and back, and no time for the three that are asked for
    world.blackHole(1);
    world.run(1s);
    EXPECT_GT(sent() - silent, 10) << "it has answered, and was asked often for a while";

    const std::int64_t before = sent();
    world.run(1h);
    const std::int64_t expected = 1h / options().link.longestReturnInterval;
    EXPECT_NEAR(static_cast<double>(sent() - before), static_cast<double>(expected), 2) << last;
    for (int end = 0; end < 2; ++end) {
      EXPECT_FALSE(world.link(end).railUp(1));
      EXPECT_EQ(world.link(end).epoch(1), 1U);
    }

    for (const int rail : {0, 1}) world.heal(rail);
    world.run(2 * options().link.longestReturnInterval);
    for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.link(end).railUp(1));
    bothWays(world, 1 << 20);
    EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
    expectClean(world);
  }
}

// It answered while it was held off, and is dead when it no longer is: nobody connects it.
TEST_P(LongOutageTest, AnswersFromBeforeASecondOutageBringNoRailBack) {
  SimOptions heldOff = options();
  heldOff.link.holdOff = 1s;
  SimWorld world(heldOff);
  bool opened = false;
  world.onRailChange = [&](const RailChange& change) {
    opened = opened || (change.rail == 1 && change.to == Link::Phase::kOpening);
  };
  world.reset(1);
  world.run(300ms);
  ASSERT_FALSE(world.link(0).railUp(1));
  world.blackHole(1);
  world.run(10s);
  EXPECT_FALSE(opened);
  world.heal(1);
  world.run(1s);
  for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.link(end).railUp(1));
  expectClean(world);
}

// Ten milliseconds apart is soon enough where others carry the load.
TEST_P(LongOutageTest, WhereThereIsNoRailAPathThatAnswersIsTriedAtThePaceOfATrial) {
  SimOptions patient = options();
  patient.link.giveUp = 10s;
  for (const bool last : {false, true}) {
    SimWorld world(patient);
    world.run(50ms);
    if (last) world.blackHole(0);
    world.blackHole(1);
    bothWays(world, 1 << 20);
    world.run(500ms);
    ASSERT_FALSE(world.link(0).railUp(1));
    world.heal(1);
    const Duration first = patient.link.returnProbeInterval;
    world.run(first + patient.link.answersToReturn * patient.link.suspectProbeInterval);
    for (int end = 0; end < 2; ++end) EXPECT_EQ(world.link(end).railUp(1), last);
    if (last) world.heal(0);
    EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
    expectClean(world);
  }
}

INSTANTIATE_TEST_SUITE_P(Rails, LongOutageTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

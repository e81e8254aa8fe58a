#include <gtest/gtest.h>

#include "tests/unit/channel/link_fixture.h"

// What the link believes of a rail, a path and a peer: what breaks is named, what is only slow is
// not given up.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::DeadDirection;
using channel::Patience;
using channel::Reach;
using channel::Where;

class LinkVerdictTest : public LinkFixture {};

TEST_P(LinkVerdictTest, APortThatIsDownIsSeenBeforeItsPathIsBlamed) {
  SimOptions late = options();
  late.portEventDelay = 300ms;
  SimWorld world(late);
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_FALSE(world.portDownTold(1, 0));
  ASSERT_EQ(world.failovers(0).size(), 1u);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kLocalNic);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRemoteNic);
  world.run(1s);
  world.heal(0);
  world.run(1s);
  EXPECT_TRUE(world.link(0).railUp(0));
  expectClean(world);
}

TEST_P(LinkVerdictTest, ALateWordOfAPortExplainsTheFailoverAtBothEnds) {
  SimOptions late = options();
  late.portEventDelay = 300ms;
  late.portsSeen = false;
  SimWorld world(late);
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  ASSERT_EQ(world.failovers(0).size(), 1u);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kPath) << "nobody can know";
  world.run(1s);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kLocalNic);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRemoteNic);
  EXPECT_EQ(world.failovers(0)[0].where, Where::kRemote);
  EXPECT_TRUE(world.failovers(0)[0].told);
  expectClean(world);
}

TEST_P(LinkVerdictTest, APortThatGoesDownLongAfterItsPathHasNotBrokenIt) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.blackHole(0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(channel::Link::kLatestPortEvent);
  world.portDown(1, 0);
  world.run(1s);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kPath);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kPath);
  expectClean(world);
}

TEST_P(LinkVerdictTest, TheWordOfTheOtherEndExplainsTheResetThatHasOvertakenIt) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  const TimePoint fault = world.clock().now();
  world.runEvent(0, Input::kReset, [&] { world.link(0).onRailFailed(0, Cause::kPath, fault); });
  world.runEvent(1, Input::kReset, [&] { world.link(1).onRailFailed(0, Cause::kRail, fault); });
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  ASSERT_EQ(world.failovers(0).size(), 1u);
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kPath);
  EXPECT_FALSE(world.failovers(0)[0].told);
  EXPECT_EQ(world.failovers(1)[0].cause, Cause::kPath);
  EXPECT_TRUE(world.failovers(1)[0].told);
}

TEST_P(LinkVerdictTest, BlackHoleIsFoundByProbes) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.blackHole(0);
  const TimePoint fault = world.clock().now();
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  ASSERT_GE(world.failovers(0).size(), 1u);
  EXPECT_EQ(world.failovers(0)[0].cause, Cause::kPath);
  EXPECT_EQ(world.failovers(0)[0].deadDirection, DeadDirection::kBoth);
  EXPECT_EQ(world.failovers(1)[0].deadDirection, DeadDirection::kBoth);
  EXPECT_LT(world.failovers(0)[0].detected - fault, 100ms);
}

TEST_P(LinkVerdictTest, OneDirectionLostIsFoundAndNamedAtBothEnds) {
  for (const bool fromEnd0 : {true, false}) {
    for (const int rail : {0, 1}) {  // rail 0 also carries the acknowledgements of both
      SimWorld world(options());
      bothWays(world, 8 << 20);
      world.run(10ms);
      world.blackHole(rail, fromEnd0, !fromEnd0);
      EXPECT_TRUE(world.runUntilIdle(1s));
      expectClean(world);
      for (int end = 0; end < 2; ++end) {
        ASSERT_EQ(world.failovers(end).size(), 1u);
        EXPECT_EQ(world.failovers(end)[0].rail, rail);
        EXPECT_EQ(world.failovers(end)[0].cause, Cause::kPath);
        EXPECT_EQ(world.failovers(end)[0].deadDirection,
                  fromEnd0 == (end == 0) ? DeadDirection::kOutgoing : DeadDirection::kIncoming);
      }
    }
  }
}

TEST_P(LinkVerdictTest, TheDirectionIsKnownWhereOnlyOneEndSends) {
  for (const bool fromEnd0 : {true, false}) {
    SimWorld world(options());
    for (int i = 0; i < 4; ++i) world.message(0, 4 << 20);
    world.run(10ms);
    world.blackHole(1, fromEnd0, !fromEnd0);
    // What end 0 sends still arrives when only the way back is lost, and acknowledgements find
    // another way: then nothing is wrong with the messages, and nobody gives the rail up.
    EXPECT_TRUE(world.runUntilIdle(1s));
    expectClean(world);
    ASSERT_EQ(world.failovers(0).size(), fromEnd0 ? 1u : 0u);
    if (!fromEnd0) continue;
    EXPECT_EQ(world.failovers(0)[0].deadDirection, DeadDirection::kOutgoing);
    EXPECT_EQ(world.failovers(1)[0].deadDirection, DeadDirection::kIncoming);
  }
}

TEST_P(LinkVerdictTest, TheOtherEndOfARailWithoutProgressSaysThatItTakesBytes) {
  SimWorld world(options());
  for (int message = 0; message < 8; ++message) world.message(0, 1 << 20);
  world.run(20ms);
  EXPECT_EQ(world.roomTold(1, 0), 0) << "all is well";
  world.slow(0, SimWorld::kStuckRate);  // its path answers
  world.run(200ms);
  EXPECT_GT(world.roomTold(1, 0), 0);
  EXPECT_EQ(world.roomTold(0, 0), 0) << "who asks is not the one who is waited for";
  for (int rail = 1; rail < world.link(0).options().rails; ++rail) {
    EXPECT_EQ(world.roomTold(1, rail), 0) << "all is well there";
  }
  world.slow(0, 100e6);
  EXPECT_TRUE(world.runUntilIdle(60s));
}

TEST_P(LinkVerdictTest, AStuckTransportIsNotWaitedForOnceThePathAnswers) {
  // The path is back before anybody can convict it, but the transport waits 200 ms for its timer.
  for (const Duration outage : {18ms, 21ms, 24ms}) {
    SCOPED_TRACE(formatDuration(outage));
    SimOptions chosen = options();
    chosen.backsOff = true;
    SimWorld world(chosen);
    bothWays(world, 8 << 20);
    world.run(10ms);
    world.blackHole(0);
    const TimePoint fault = world.clock().now();
    world.run(outage);
    world.heal(0);
    EXPECT_TRUE(world.runUntilIdle(1s));
    const Duration sending = 80ms;  // 8 MiB each way over one rail
    EXPECT_LT(world.clock().now() - fault, outage + 20ms + sending);
    expectClean(world);
    EXPECT_GE(world.link(0).counters().stalls + world.link(1).counters().stalls, 1u);
    for (int end = 0; end < 2; ++end) ASSERT_FALSE(world.failovers(end).empty());
    EXPECT_EQ(world.failovers(0)[0].cause, Cause::kRail);
    EXPECT_TRUE(world.failovers(0)[0].stalled);
    EXPECT_TRUE(world.failovers(1)[0].stalled);
  }
}

TEST_P(LinkVerdictTest, AnInterruptionBeforeTheSuspicionCountsToo) {
  // Over before a round is lost; but acknowledgements travel all the time, and they are numbered.
  for (const Duration outage : {11ms, 13ms, 15ms}) {
    SCOPED_TRACE(formatDuration(outage));
    SimOptions chosen = options();
    chosen.backsOff = true;
    SimWorld world(chosen);
    bothWays(world, 8 << 20);
    world.run(10ms);
    world.blackHole(0);
    world.run(outage);
    world.heal(0);
    EXPECT_TRUE(world.runUntilIdle(1s));
    expectClean(world);
    for (int end = 0; end < 2; ++end) {
      EXPECT_LT(world.link(end).counters().longestReceiveStall, outage + 20ms);
      ASSERT_FALSE(world.failovers(end).empty());
      EXPECT_TRUE(world.failovers(end)[0].stalled);
      EXPECT_EQ(world.link(end).counters().degradations, 0u);
    }
  }
}

TEST_P(LinkVerdictTest, WhatCameInBeforeAnOutageIsAcknowledgedLateAndProvesNothing) {
  for (Duration outage = 13ms; outage < 20ms; outage += 250us) {
    SCOPED_TRACE(formatDuration(outage));
    SimOptions chosen = options();
    chosen.backsOff = true;
    chosen.wireLatency = 1ms;
    SimWorld world(chosen);
    for (const int rail : {0, 1}) world.slow(rail, 20e6);
    for (int i = 0; i < 4; ++i) world.message(0, 2 << 20);  // only acknowledgements come back
    world.run(10ms);
    world.blackHole(0);
    world.run(outage);
    world.heal(0);
    EXPECT_TRUE(world.runUntilIdle(1s));
    expectClean(world);
    for (int end = 0; end < 2; ++end) {
      EXPECT_LT(world.link(end).counters().longestReceiveStall, outage + 20ms);
      EXPECT_FALSE(world.failovers(end).empty());
    }
  }
}

TEST_P(LinkVerdictTest, AStallIsMeasuredAlsoWhereNoRailIsGivenUp) {
  // Over before it is suspected: only the transport's timer ends it.
  for (const Duration outage : {0ms, 6ms}) {
    SCOPED_TRACE(formatDuration(outage));
    SimOptions chosen = options();
    chosen.backsOff = true;
    SimWorld world(chosen);
    for (int i = 0; i < 4; ++i) world.message(0, 4 << 20);
    world.run(10ms);
    if (outage > 0ms) {
      for (int rail = 0; rail < chosen.link.rails; ++rail) world.blackHole(rail);
      world.run(outage);
      for (int rail = 0; rail < chosen.link.rails; ++rail) world.heal(rail);
    }
    EXPECT_TRUE(world.runUntilIdle(1s));
    expectClean(world);
    EXPECT_TRUE(world.failovers(0).empty());
    const Duration stall = world.link(1).counters().longestReceiveStall;
    if (outage > 0ms) {
      EXPECT_GE(stall, outage);
    } else {
      EXPECT_LT(stall, 6ms);
    }
    EXPECT_EQ(world.link(0).counters().longestReceiveStall, 0ms) << "it receives nothing";
  }
}

TEST_P(LinkVerdictTest, ARailThatCarriesDatagramsAloneIsGivenUpWhenThereAreOthers) {
  for (const int rails : {2, 4}) {
    SimOptions chosen = options();
    chosen.link.rails = rails;
    SimWorld world(chosen);
    bothWays(world, 1 << 20);
    EXPECT_TRUE(world.runUntilIdle(1s));
    world.slow(0, 1);  // a byte per second
    bothWays(world, 1 << 20, 2);
    EXPECT_TRUE(world.runUntilIdle(chosen.link.giveUp)) << rails;
    expectClean(world);
    for (const auto& failover : world.failovers(0)) {
      EXPECT_EQ(failover.rail, 0);
      EXPECT_EQ(failover.cause, channel::Cause::kRail);
    }
  }
}

TEST_P(LinkVerdictTest, ASlowRailIsNotADeadOne) {
  for (const double share : {0.5, 0.1, 0.01}) {
    SimOptions chosen = options();
    chosen.backsOff = true;
    SimWorld world(chosen);
    bothWays(world, 1 << 20);
    world.slow(0, 100e6 * share);
    EXPECT_TRUE(world.runUntilIdle(10s)) << share;
    expectClean(world);
    EXPECT_EQ(world.link(0).counters().failovers, 0u) << share;
  }
}

TEST_P(LinkVerdictTest, ASlowRailIsDegradedUntilItIsFastAgain) {
  for (const double share : {0.5, 0.1}) {
    SCOPED_TRACE(share);
    constexpr double kRate = 20e6;
    SimOptions chosen = options();
    chosen.link.giveUp = 10s;
    SimWorld world(chosen);
    for (const int rail : {0, 1}) world.slow(rail, kRate);
    const auto run = [&] {
      bothWays(world, 4 << 20, 5);
      EXPECT_TRUE(world.runUntilIdle(20s));
    };
    run();
    for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.degradedRails(end).empty());
    world.slow(1, kRate * share);
    run();
    for (int end = 0; end < 2; ++end) {
      EXPECT_EQ(world.degradedRails(end), std::set{1});
      EXPECT_EQ(world.link(end).counters().degradations, 1u);
      EXPECT_EQ(world.link(end).counters().failovers, 0u);
    }
    world.slow(1, kRate);
    run();
    for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.degradedRails(end).empty());
    world.checkMemory();
    for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
  }
}

TEST_P(LinkVerdictTest, ASlowRailThatFailsIsDegradedNoMore) {
  SimOptions chosen = options();
  chosen.link.giveUp = 10s;
  SimWorld world(chosen);
  constexpr double kRate = 20e6;
  world.slow(0, kRate);
  world.slow(1, kRate / 10);
  bothWays(world, 4 << 20, 5);
  EXPECT_TRUE(world.runUntilIdle(20s));
  for (int end = 0; end < 2; ++end) ASSERT_EQ(world.degradedRails(end), std::set{1});
  int changes = 0;
  world.onDegraded = [&](int, const channel::RailDegradation& change) {
    EXPECT_EQ(change.rail, 1);
    ++changes;
  };
  for (const int rail : {0, 1}) world.reset(rail);
  world.run(20ms);
  EXPECT_EQ(changes, 2) << "once at each end";
  for (int end = 0; end < 2; ++end) EXPECT_TRUE(world.degradedRails(end).empty());
}

TEST_P(LinkVerdictTest, ARailIsSuspectedAfterLongerThanItUsuallyTakes) {
  const SimOptions chosen = options();
  SimWorld world(chosen);
  // A chunk takes 30 ms, three times suspectAfter.
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, chosen.link.chunkBytes / 30e-3);
  const auto suspicions = [&] { return world.link(0).counters().suspicions; };
  const std::uint64_t chunks = 100;
  world.message(0, chunks * chosen.link.chunkBytes);
  world.run(1s);
  EXPECT_LE(suspicions(), 12u);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
  const std::uint64_t learnt = suspicions();
  world.run(300ms);
  EXPECT_LE(suspicions(), learnt + 2);
  // Dead, it is found nevertheless.
  world.blackHole(1);
  world.run(Patience::kMost * chosen.link.suspectAfter + 60ms);
  EXPECT_EQ(world.link(0).counters().failovers, 1u);
  EXPECT_TRUE(world.runUntilIdle(10s));
  expectClean(world);
}

TEST_P(LinkVerdictTest, WhatARailUsuallyTookIsForgottenWhenItComesBack) {
  const SimOptions chosen = options();
  SimWorld world(chosen);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, chosen.link.chunkBytes / 30e-3);
  world.message(0, 50 * chosen.link.chunkBytes);
  EXPECT_TRUE(world.runUntilIdle(5s));
  ASSERT_EQ(world.link(0).counters().failovers, 0u);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 100e6);
  world.reset(1);
  world.run(500ms);
  ASSERT_TRUE(world.link(0).railUp(1));
  world.blackHole(1);
  world.message(0, 8 << 20);
  world.run(4 * chosen.link.suspectAfter);
  EXPECT_EQ(world.link(0).counters().failovers, 2u) << "found as soon as on a new rail";
  EXPECT_TRUE(world.runUntilIdle(10s));
  expectClean(world);
}

TEST_P(LinkVerdictTest, AStoppedPeerIsNotADeadRail) {
  for (int end = 0; end < 2; ++end) {
    SimOptions chosen = options();
    chosen.link.giveUp = 10s;
    chosen.backsOff = true;
    SimWorld world(chosen);
    bothWays(world, 4 << 20);
    world.run(5ms);
    world.pause(end, 5s);
    EXPECT_TRUE(world.runUntilIdle(20s));
    expectClean(world);
    EXPECT_EQ(world.link(0).counters().failovers, 0u);
    EXPECT_EQ(world.link(1).counters().failovers, 0u);
    EXPECT_GT(world.link(1 - end).counters().suspicions, 0u);
  }
}

TEST_P(LinkVerdictTest, AnExaminationTellsWhichPathsAnswerAlsoWhereNothingIsSent) {
  SimWorld world(options(3));
  world.portDown(1, 0);
  world.blackHole(1, /*fromEnd0=*/false, /*fromEnd1=*/true);
  world.run(5ms);
  for (int end = 0; end < 2; ++end) {
    std::uint32_t mark = 0;
    world.runEvent(end, Input::kClient,
                   [&] { mark = world.link(end).examine(world.clock().now()); });
    for (int path = 0; path < 4; ++path) {
      EXPECT_EQ(world.link(end).reach(path, mark), Reach::kUnknown);
    }
    world.run(60ms);
    // An end whose own port is down has not asked, and cannot say.
    EXPECT_EQ(world.link(end).reach(0, mark), end == 1 ? Reach::kUnknown : Reach::kSilent);
    EXPECT_EQ(world.link(end).reach(1, mark), Reach::kSilent);
    EXPECT_EQ(world.link(end).reach(2, mark), Reach::kAnswers);
    EXPECT_EQ(world.link(end).reach(3, mark), Reach::kAnswers);
    EXPECT_EQ(world.link(end).counters().suspicions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Rails, LinkVerdictTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

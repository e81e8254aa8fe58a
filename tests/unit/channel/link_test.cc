#include "resilient_ccl/channel/link.h"

#include <gtest/gtest.h>

#include "tests/support/sim_world.h"

// Each invariant of the channel (docs/channel.md) has its test here, over rails with RDMA's late
// writes and over rails whose receiver places every byte.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::DeadDirection;
using channel::Policy;
using channel::Reach;
using channel::Where;

class LinkTest : public ::testing::TestWithParam<std::tuple<bool, Policy>> {
 protected:
  SimOptions options(int rails = 2) {
    SimOptions options;
    options.link.rails = rails;
    options.lateWrites = std::get<0>(GetParam());
    options.link.policy = std::get<1>(GetParam());
    options.link.giveUp = 1s;
    return options;
  }
  static void expectClean(SimWorld& world) {
    world.run(200ms);  // late writes have landed by then
    world.checkMemory();
    for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
    EXPECT_EQ(world.completed(), world.posted());
    // The exchange at the fence leaves nothing to be sent twice; only tails are, on purpose.
    for (int end = 0; end < 2; ++end) {
      EXPECT_LE(world.link(end).counters().bytesDuplicate,
                world.link(1 - end).counters().bytesCopied);
    }
  }
  static void bothWays(SimWorld& world, Bytes length, int count = 1) {
    for (int i = 0; i < count; ++i) {
      for (int from = 0; from < 2; ++from) world.message(from, length);
    }
  }
};

TEST_P(LinkTest, MessagesOfAnySizeArrive) {
  SimWorld world(options());
  for (const Bytes length : {0, 1, 7, 65535, 65536, 65537, 1 << 20}) bothWays(world, length);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
}

TEST_P(LinkTest, OrderOfPostingDoesNotMatter) {
  SimWorld world(options());
  world.message(0, 1 << 20, 30ms, 0ms);
  world.message(0, 1 << 20, 0ms, 30ms);
  world.message(0, 100, 1ms, 2ms);
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
  // A window at 100 MB/s, give or take a fifth of the estimate, and one chunk.
  const double window = (128 << 10) + toSeconds(options().link.windowTime) * 100e6;
  EXPECT_LE(static_cast<double>(world.failovers(0)[0].resentBytes), 1.2 * window + (64 << 10));
  // Told, not timed out.
  EXPECT_LT(world.failovers(0)[0].detected - world.failovers(1)[0].detected, 2ms);
}

TEST_P(LinkTest, APortThatIsDownIsSeenBeforeItsPathIsBlamed) {
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

TEST_P(LinkTest, ALateWordOfAPortExplainsTheFailoverAtBothEnds) {
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

TEST_P(LinkTest, APortThatGoesDownLongAfterItsPathHasNotBrokenIt) {
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

TEST(LinkPauseTest, AReceiveWaitsFromItsBeginAndNotFromItsPost) {
  SimOptions options;
  options.link.rails = 2;
  options.lateWrites = false;  // the header tells that a message has begun
  SimWorld world(options);
  for (int rail = 0; rail < 2; ++rail) world.slow(rail, 4e6);  // 16 ms for a chunk
  world.message(0, 1 << 20, /*sendDelay=*/500ms);
  world.run(510ms);  // in the middle of its first chunks
  world.portDown(1, 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  ASSERT_EQ(world.failovers(1).size(), 1u);
  EXPECT_TRUE(world.failovers(1)[0].receiving);
  EXPECT_GT(world.failovers(1)[0].receiveStall, 0ms);
  EXPECT_LT(world.failovers(1)[0].receiveStall, 100ms);
}

TEST_P(LinkTest, TheWordOfTheOtherEndExplainsTheResetThatHasOvertakenIt) {
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

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_P(LinkTest, WhoIsHeardByNobodyIsNamedByWhatOthersSay) {
  for (const Reach reach : {Reach::kUnknown, Reach::kAnswers, Reach::kSilent}) {
    SimWorld world(options());
    bothWays(world, 8 << 20);
    world.run(10ms);
    world.kill(1);
    const Duration budget = options().link.giveUp;
    world.run(budget / 2);
    EXPECT_EQ(world.missed(0), 0);
    world.run(budget * 3 / 10);
    EXPECT_EQ(world.missed(0), 1) << "in time for an answer";
    world.link(0).heardElsewhere(reach);
    world.run(budget / 2);
    EXPECT_EQ(world.missed(0), 1);
    const std::string& why = world.error(0).message();
    EXPECT_EQ(contains(why, "though others hear it"), reach == Reach::kAnswers) << why;
    EXPECT_EQ(contains(why, "gone for all"), reach == Reach::kSilent) << why;
  }
}

TEST_P(LinkTest, WhoComesBackInTimeIsMissedAndNotGivenUp) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.pause(1, options().link.giveUp * 8 / 10);
  EXPECT_TRUE(world.runUntilIdle(20s));
  EXPECT_EQ(world.missed(0), 1);
  expectClean(world);
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

TEST_P(LinkTest, BlackHoleIsFoundByProbes) {
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

TEST_P(LinkTest, OneDirectionLostIsFoundAndNamedAtBothEnds) {
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

TEST_P(LinkTest, TheDirectionIsKnownWhereOnlyOneEndSends) {
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

TEST_P(LinkTest, AStuckTransportIsNotWaitedForOnceThePathAnswers) {
  // The path is back before anybody can convict it, but the transport waits 200 ms for its timer.
  for (const Duration outage : {22ms, 25ms, 28ms}) {
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

TEST_P(LinkTest, EverythingDownForAWhileContinuesSoonAfterItsReturn) {
  // No path answers, so nothing is convicted, and both transports back off.
  for (const Duration outage : {60ms, 300ms, 800ms}) {
    SimOptions chosen = options();
    chosen.backsOff = true;
    SimWorld world(chosen);
    bothWays(world, 8 << 20);
    world.run(10ms);
    for (const int rail : {0, 1}) world.blackHole(rail);
    world.managementPath(false);
    const TimePoint fault = world.clock().now();
    world.run(outage);
    world.managementPath(true);
    for (const int rail : {0, 1}) world.heal(rail);
    EXPECT_TRUE(world.runUntilIdle(2s));
    const Duration sending = 80ms;
    EXPECT_LT(world.clock().now() - fault, outage + 50ms + sending);
    expectClean(world);
    EXPECT_GE(world.link(0).counters().stalls + world.link(1).counters().stalls, 1u);
  }
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
      world.run(500ms);
    }
    expectClean(world);
  }
}

TEST_P(LinkTest, ARailThatCarriesDatagramsAloneIsGivenUpWhenThereAreOthers) {
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

TEST_P(LinkTest, ASlowRailIsNotADeadOne) {
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

TEST_P(LinkTest, ASlowRailIsDegradedUntilItIsFastAgain) {
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

TEST_P(LinkTest, AStoppedPeerIsNotADeadRail) {
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

TEST_P(LinkTest, AllRailsDownForLessThanTheBudgetContinues) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  world.portDown(0, 1);
  world.run(500ms);
  EXPECT_TRUE(world.error(0).ok());
  world.heal(1);
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectClean(world);
}

TEST_P(LinkTest, AllRailsDownForGoodIsAnErrorOnBothEndsThatNamesRailPeerAndReason) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  world.portDown(1, 1);
  const TimePoint fault = world.clock().now();
  EXPECT_FALSE(world.runUntilIdle(10s));
  world.run(100ms);
  EXPECT_LT(world.clock().now() - fault, 1300ms);  // the budget is 1 s
  for (int end = 0; end < 2; ++end) {
    const std::string message = world.error(end).message();
    EXPECT_FALSE(world.error(end).ok());
    EXPECT_NE(message.find(end == 0 ? "rank 1" : "rank 0"), std::string::npos) << message;
    EXPECT_NE(message.find("rail 1"), std::string::npos) << message;
    EXPECT_NE(message.find(end == 0 ? "remote_nic" : "local_nic"), std::string::npos) << message;
  }
}

TEST_P(LinkTest, AMachineThatStoodStillHasSpentNoBudget) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  for (int end = 0; end < 2; ++end) world.pause(end, 3s);  // as a suspended virtual machine
  EXPECT_TRUE(world.runUntilIdle(10s)) << world.error(0).message();
  expectClean(world);
}

TEST_P(LinkTest, ADeadPeerIsAnErrorWithinTheBudget) {
  SimWorld world(options());
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.kill(1);
  EXPECT_FALSE(world.runUntilIdle(10s));
  EXPECT_NE(world.error(0).message().find("has not been heard"), std::string::npos);
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

TEST_P(LinkTest, AnExaminationTellsWhichPathsAnswerAlsoWhereNothingIsSent) {
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

TEST_P(LinkTest, WithoutResilienceADeadRailHangs) {
  SimOptions chosen = options();
  chosen.link.resilient = false;
  SimWorld world(chosen);
  bothWays(world, 8 << 20);
  world.run(10ms);
  world.portDown(1, 0);
  EXPECT_FALSE(world.runUntilIdle(10s));
  EXPECT_TRUE(world.error(0).ok());
  EXPECT_EQ(world.link(0).counters().suspicions, 0u);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
}

TEST_P(LinkTest, WithoutResilienceALostAcknowledgementIsAskedFor) {
  SimOptions chosen = options();
  chosen.link.resilient = false;
  chosen.datagramLoss = 0.3;
  SimWorld world(chosen);
  for (int i = 0; i < 50; ++i) {
    bothWays(world, 1000);
    EXPECT_TRUE(world.runUntilIdle(10s)) << i;
  }
  expectClean(world);
  EXPECT_EQ(world.link(0).counters().failovers, 0u);
}

TEST_P(LinkTest, AConnectionThatOnlyOneEndHasIsReplaced) {
  SimWorld world(options());
  world.portDown(1, 0);
  world.run(100ms);
  world.heal(0);
  // The accepting end has the new connection; its answer is still on the way when the connecting
  // end's port goes down: that end drops the attempt, and its reset gets lost.
  while (!world.link(1).railUp(0)) ASSERT_TRUE(world.clock().step(TimePoint::max()));
  ASSERT_FALSE(world.link(0).railUp(0));
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

INSTANTIATE_TEST_SUITE_P(Rails, LinkTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(Policy::kPinned, Policy::kPull)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) ? "LateWrites" : "Placed") +
                                  (std::get<1>(tested.param) == Policy::kPinned ? "Pinned"
                                                                                : "Pull");
                         });

}  // namespace
}  // namespace faultline::test

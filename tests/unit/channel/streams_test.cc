#include <gtest/gtest.h>

#include "tests/unit/channel/link_fixture.h"

// Streams that are closed with messages in flight, and messages that are too long: docs/channel.md,
// "Ends of streams". What is done with their memory, the world watches.

namespace faultline::test {
namespace {

class StreamsTest : public LinkFixture {
 protected:
  static constexpr int kStream = 3;
  static constexpr int kMessages = 8;

  static SimOptions withSmall(bool eager = false) {
    SimOptions it = options();
    it.link.smallMessage = 1000;
    it.eager = eager;
    return it;
  }
  /// End 0 sends in a stream that is closed, and both send in one that is not.
  static void begin(SimWorld& world) {
    for (int i = 0; i < kMessages; ++i) world.message(0, 1 << 20, {.stream = kStream});
    bothWays(world, 1 << 20, 2);
    world.run(5ms);
  }
  static void expectAllOver(SimWorld& world, int failed) {
    EXPECT_TRUE(world.runUntilIdle(2s));
    world.run(200ms);
    world.checkMemory();
    for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
    EXPECT_EQ(world.failedSends(), failed);
    EXPECT_EQ(world.completed() + world.failedReceives(), world.posted());
    for (int end = 0; end < 2; ++end) {
      EXPECT_TRUE(world.error(end).ok()) << world.error(end).message();
      EXPECT_EQ(world.link(end).counters().failovers, 0u) << "the link goes on, with all rails";
      EXPECT_EQ(world.link(end).earlyGrants(), 0u);
    }
  }
  static std::size_t remembered(SimWorld& world) {
    return world.link(0).endedStreams() + world.link(1).endedStreams();
  }
};

TEST_P(StreamsTest, SendsAreWithdrawnAndTheReceiverKnows) {
  SimWorld world(options());
  begin(world);
  world.close(0, Side::kSends, kStream);
  EXPECT_TRUE(world.runUntilIdle(2s));
  EXPECT_GT(world.failedSends(), 0);
  expectAllOver(world, world.failedSends());
  EXPECT_EQ(remembered(world), 1u) << "the other end has not closed it";
  world.message(0, 100, {.stream = kStream, .sent = false});
  EXPECT_TRUE(world.runUntilIdle(1s)) << "what is received later fails at once";
  world.close(1, Side::kReceives, kStream);
  world.run(20ms);
  EXPECT_EQ(remembered(world), 0u);
}

TEST_P(StreamsTest, ReceivesAreWithdrawnAndTheSenderKnows) {
  SimWorld world(options());
  begin(world);
  world.close(1, Side::kReceives, kStream);
  EXPECT_TRUE(world.runUntilIdle(2s));
  EXPECT_GT(world.failedReceives(), 0);
  expectAllOver(world, world.failedSends());
  EXPECT_GE(world.failedReceives(), world.failedSends());
  world.message(0, 100, {.stream = kStream, .received = false});
  EXPECT_TRUE(world.runUntilIdle(1s)) << "what is sent later fails at once";
  world.close(0, Side::kSends, kStream);
  world.run(20ms);
  EXPECT_EQ(remembered(world), 0u);
}

TEST_P(StreamsTest, BothEndsMayCloseAtOnce) {
  SimWorld world(options());
  begin(world);
  world.close(0, Side::kSends, kStream);
  world.close(1, Side::kReceives, kStream);
  EXPECT_TRUE(world.runUntilIdle(2s));
  expectAllOver(world, world.failedSends());
  EXPECT_EQ(remembered(world), 0u);
}

TEST_P(StreamsTest, GrantsOfAClosedStreamAreForgotten) {
  SimWorld world(options());
  for (int i = 0; i < 100; ++i) world.message(0, 1000, {.stream = kStream, .sent = false});
  world.run(20ms);
  EXPECT_EQ(world.link(0).earlyGrants(), 100u);
  world.close(0, Side::kSends, kStream);
  EXPECT_EQ(world.link(0).earlyGrants(), 0u);
  world.close(1, Side::kReceives, kStream);
  world.run(20ms);
  EXPECT_EQ(world.failedReceives(), 100);
  EXPECT_EQ(remembered(world), 0u);
}

TEST_P(StreamsTest, NoSendFailsWhoseReceiveHasEverything) {
  SimOptions fenced = options();
  fenced.fenceTime = 20ms;
  SimWorld world(fenced);
  world.message(0, 100, {.stream = kStream});
  while (world.completed() == 0) ASSERT_TRUE(world.clock().step(world.clock().now() + 1s));
  for (int rail = 0; rail < 2; ++rail) world.reset(rail);
  world.close(1, Side::kReceives, kStream);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_EQ(world.failedSends(), 0);
  for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
}

TEST_P(StreamsTest, WithdrawnChunksOfAFailedRailAreNotSentAgain) {
  SimOptions fenced = options();
  fenced.fenceTime = 5ms;
  SimWorld world(fenced);
  for (int i = 0; i < kMessages; ++i) world.message(0, 1 << 20, {.stream = kStream});
  world.run(3ms);
  world.portDown(0, 0);
  world.run(1ms);
  world.close(0, Side::kSends, kStream);
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(100ms);
  world.checkMemory();
  for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
  EXPECT_GT(world.failedSends(), 0);
  EXPECT_EQ(world.failovers(0).size(), 1u) << "reported, though nothing is left to deliver";
  EXPECT_EQ(world.link(0).counters().chunksResent, 0u);
}

TEST_P(StreamsTest, AMessageThatIsTooLongFailsAloneAtBothEnds) {
  SimWorld world(options());
  world.message(0, 1 << 20);
  world.message(0, 100'000, {.room = 99'999});
  world.message(0, 100'000, {.sendDelay = 10ms, .room = 10});  // its grant is there
  world.message(0, 100'000, {.room = 200'000});
  world.message(0, 0, {.room = 0});
  expectAllOver(world, 2);
  EXPECT_EQ(world.failedReceives(), 2);
  EXPECT_EQ(world.completed(), 3);
}

TEST_P(StreamsTest, SmallMessagesAreDoneWhenTheyArePostedAndAskedFor) {
  const SimOptions small = withSmall();
  SimWorld world(small);
  for (const Bytes length : {1000, 1001}) {
    world.message(0, length, {.sendDelay = 5ms});
    world.message(0, length, {.receiveDelay = 20ms});
  }
  world.run(5001us);
  EXPECT_EQ(world.doneSends(), 1) << "the small one that is asked for";
  EXPECT_FALSE(world.link(0).delivered());
  EXPECT_TRUE(world.runUntilIdle(1s));
  world.run(5ms);
  EXPECT_TRUE(world.link(0).delivered());
  expectAllOver(world, 0);
}

// Nobody was told that they are done, so whoever ends need not wait for them.
TEST_P(StreamsTest, WhatNobodyAsksForIsNotAwaited) {
  const SimOptions small = withSmall();
  SimWorld world(small);
  world.message(0, 1000, {.receiveDelay = 50ms});
  world.message(0, 1 << 20, {.receiveDelay = 50ms});
  world.run(20ms);
  EXPECT_TRUE(world.link(0).busy());
  EXPECT_TRUE(world.link(0).delivered());
  EXPECT_TRUE(world.runUntilIdle(1s));
  expectAllOver(world, 0);
}

TEST_P(StreamsTest, SmallMessagesThatAreDoneArriveThoughTheirStreamIsClosed) {
  const SimOptions small = withSmall();
  SimWorld world(small);
  for (const Bytes length : {1000, 1 << 20}) {
    world.message(0, length, {.sendDelay = 5ms, .stream = kStream});
  }
  world.message(0, 1000, {.receiveDelay = 20ms, .stream = kStream});
  world.run(5001us);
  world.close(0, Side::kSends, kStream);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_EQ(world.completed(), 1);
  expectAllOver(world, 2);
}

TEST_P(StreamsTest, AnEagerReceiveTakesAShortMessageBeforeAnybodyAsksForIt) {
  const SimOptions eager = withSmall(/*eager=*/true);
  SimWorld world(eager);
  world.message(0, 1000, {.receiveDelay = 20ms});
  world.message(0, 1000, {.sendDelay = 12ms, .receiveDelay = 20ms});
  world.message(0, 1000, {.sendDelay = 25ms, .receiveDelay = 20ms});
  world.message(0, 1000, {.receiveDelay = 20ms, .room = 999});  // which it learns when it asks
  world.run(15ms);
  EXPECT_EQ(world.doneSends(), 3);
  EXPECT_TRUE(world.link(0).delivered());
  EXPECT_EQ(world.completed(), 0);
  EXPECT_FALSE(world.link(1).busy()) << "nobody waits";
  world.run(7ms);
  EXPECT_EQ(world.completed(), 2);
  EXPECT_TRUE(world.link(1).busy()) << "somebody waits for the third";
  expectAllOver(world, 0);
  EXPECT_EQ(world.completed(), 3);
  EXPECT_EQ(world.failedReceives(), 1);
}

TEST_P(StreamsTest, WhatDoesNotFitAnEagerReceiveWaitsForTheOtherOne) {
  const SimOptions eager = withSmall(/*eager=*/true);
  SimWorld world(eager);
  for (const Bytes length : {1001, 1 << 20}) {
    world.message(0, length, {.receiveDelay = 20ms});
    world.message(0, length, {.sendDelay = 15ms, .receiveDelay = 20ms});
    world.message(0, length, {.sendDelay = 25ms, .receiveDelay = 20ms});
    world.message(0, length, {.receiveDelay = 20ms, .room = 1000});  // nor that one
  }
  world.run(19ms);
  EXPECT_EQ(world.doneSends(), 0);
  EXPECT_TRUE(world.runUntilIdle(1s));
  EXPECT_EQ(world.completed(), 6);
  expectAllOver(world, 2);
}

TEST_P(StreamsTest, WhatDoesNotFitAnEagerReceiveIsGrantedAtOnceThoughThereAreOthers) {
  const SimOptions eager = withSmall(/*eager=*/true);
  SimWorld world(eager);
  world.message(0, 1001, {.receiveDelay = 20ms, .stream = kStream});
  for (int i = 0; i < 6; ++i) {
    world.message(0, 1000, {.receiveDelay = 30ms, .stream = kStream, .sent = false});
  }
  world.run(20ms);
  EXPECT_EQ(world.link(0).earlyGrants(), 6U);
  EXPECT_EQ(world.completed(), 0);
  world.run(700us);  // no waiting for other grants, which takes 1 ms
  EXPECT_EQ(world.completed(), 1);
}

TEST_P(StreamsTest, AnEagerReceiveKeepsItsNumberWhenNumbersBeginAgain) {
  SimOptions eager = withSmall();
  eager.link.slotNumbers = 8;
  SimWorld world(eager);
  std::vector<std::byte> memory(1000);
  const std::uint32_t kept =
      world.link(1).postReceive({1, 0, 77}, memory.data(), 1000, {}, 0, world.clock().now(), true);
  for (int i = 0; i < 20; ++i) {
    world.message(0, 100'000);
    EXPECT_TRUE(world.link(1).receives(kept));
    EXPECT_TRUE(world.runUntilIdle(1s));
    EXPECT_FALSE(world.link(1).busy());
  }
  for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
}

TEST_P(StreamsTest, EagerReceivesEndWithTheirStream) {
  const SimOptions eager = withSmall(/*eager=*/true);
  for (const int closing : {0, 1}) {
    SimWorld world(eager);
    world.message(0, 1000, {.receiveDelay = 20ms, .stream = kStream});
    world.message(0, 1000, {.receiveDelay = 20ms, .stream = kStream, .sent = false});
    world.message(0, 1000, {.receiveDelay = 60ms, .stream = kStream, .sent = false});
    world.message(0, 5000, {.receiveDelay = 60ms, .stream = kStream});
    world.run(35ms);
    EXPECT_EQ(world.completed(), 1);
    world.close(closing, closing == 0 ? Side::kSends : Side::kReceives, kStream);
    EXPECT_TRUE(world.runUntilIdle(1s));
    EXPECT_EQ(world.failedReceives(), 3);
    expectAllOver(world, 1);
    EXPECT_FALSE(world.link(1).busy());
  }
}

TEST_P(StreamsTest, GrantsThatWaitGoWithTheirStreamAndTheLinkFallsSilent) {
  SimWorld world(withSmall());
  for (int i = 0; i < 6; ++i) world.message(0, 100, {.stream = kStream, .sent = false});
  world.run(1ms);  // four are there
  for (int i = 0; i < 2; ++i) world.message(0, 100, {.stream = kStream, .sent = false});
  world.run(100us);
  world.close(1, Side::kReceives, kStream);
  world.run(1s);
  for (int end = 0; end < 2; ++end) {
    EXPECT_EQ(world.link(end).nextDeadline(), TimePoint::max()) << "end " << end;
  }
}

TEST_P(StreamsTest, GrantsForSmallMessagesWaitForEachOtherAndNotForLong) {
  const SimOptions small = withSmall();
  SimWorld world(small);
  const auto post = [&](int count) {
    for (int i = 0; i < count; ++i) world.message(0, 100, {.stream = kStream, .sent = false});
  };
  const auto datagrams = [&] { return world.link(1).counters().datagramsSent; };
  const auto before = datagrams();
  post(6);  // one is granted at once, for the others there is a little time
  world.run(500us);
  EXPECT_EQ(world.link(0).earlyGrants(), 6u);
  EXPECT_LE(datagrams() - before, 3u) << "two and an acknowledgement";
  post(2);  // the peer has enough
  world.run(1us);
  world.run(500us);
  EXPECT_EQ(world.link(0).earlyGrants(), 6u);
  world.run(1500us);
  EXPECT_EQ(world.link(0).earlyGrants(), 8u);
  world.run(5ms);
  const auto rest = datagrams();
  post(8);  // so many go together
  world.run(500us);
  EXPECT_EQ(world.link(0).earlyGrants(), 16u);
  EXPECT_LE(datagrams() - rest, 2u);
}

INSTANTIATE_TEST_SUITE_P(Rails, StreamsTest, LinkFixture::allRails(), LinkFixture::railsName);

}  // namespace
}  // namespace faultline::test

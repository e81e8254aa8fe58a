#include "resilient_ccl/comm/group_planner.h"

#include <gtest/gtest.h>

#include "tests/unit/comm/group_world.h"

namespace faultline::comm {
namespace {

TEST(GroupPlannerTest, NoOperationIsDoneByTwoPlansAndNobodyWaitsForEver) {
  std::uint64_t changes = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int ranks = 1 + static_cast<int>(seed % 5);
    World world(ranks, seed);
    world.given = plan::HealthVector(static_cast<std::size_t>(ranks));
    for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) world.step();
    std::size_t furthest = 0;
    for (int i = 0; i < ranks; ++i) furthest = std::max(furthest, world.rank(i).calls);
    world.settle(furthest + 20);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(world.failure.ok()) << world.failure.message();
    for (int i = 0; i < ranks; ++i) {
      ASSERT_EQ(world.rank(i).calls, furthest + 20) << "rank " << i << " is held";
      ASSERT_EQ(world.rank(i).planner().epoch(), world.rank(0).planner().epoch());
      ASSERT_EQ(world.rank(i).planner().health(), world.given);
    }
    changes += world.rank(0).planner().epoch();
  }
  EXPECT_GT(changes, 300u);
}

// The same while candidates are tried, which changes plans all the time.
TEST(GroupPlannerTest, TriesMixNoPlansAndEndWithTheFastest) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int ranks = 1 + static_cast<int>(seed % 5);
    World world(ranks, seed);
    world.candidates = 2 + static_cast<int>(seed % 3);
    const auto callUntil = [&](std::size_t calls) {
      for (int i = 0; i < 100'000 && world.rank(0).calls < calls; ++i) {
        world.step(/*mayChange=*/false);
        world.finishAll();
        if (testing::Test::HasFatalFailure()) return;
      }
    };
    callUntil(500);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(world.failure.ok()) << world.failure.message();
    ASSERT_GE(world.rank(0).calls, 500u);
    EXPECT_GE(world.triedPlans, 3 * world.candidates) << "three sizes";
    EXPECT_GE(world.settledPlans, 3);
    EXPECT_EQ(world.rank(0).planner().epoch(), 0u) << "no change of health";
    world.plannedCalls = world.callsOfTheBest = 0;
    callUntil(700);
    ASSERT_GE(world.rank(0).calls, 700u);
    EXPECT_EQ(world.callsOfTheBest, world.plannedCalls);

    // What was found is of the health that was.
    world.given[0] = {512, 512};
    const int tried = world.triedPlans;
    world.settle(900);
    for (int i = 0; i < ranks; ++i) EXPECT_EQ(world.rank(i).calls, 900u);
    EXPECT_EQ(world.rank(0).planner().epoch(), 1u);
    EXPECT_GT(world.triedPlans, tried);
  }
}

TEST(GroupPlannerTest, PlansThatDifferEndTheJobWithBothHashes) {
  for (const int liar : {0, 1, 2}) {
    World world(3, 1);
    world.given = plan::HealthVector(3);
    world.liar = liar;
    world.settle(5);
    ASSERT_FALSE(world.failure.ok());
    const std::string message = world.failure.message();
    EXPECT_NE(message.find("operation 0 of communicator 7"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 0 has the plan"), std::string::npos) << message;
    for (const std::uint64_t lie : {0, 1}) {
      const auto hash = fmt::format("{:016x}", GroupPlanner::hashOf(lie, world.given));
      EXPECT_NE(message.find(hash), std::string::npos) << message;
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(world.rank(i).calls, 0u) << "nothing has begun";
  }
}

// The word that all agree on a plan, come when that plan has been replaced and all have agreed on
// the next one for the same operation.
TEST(GroupPlannerTest, AWordOfAnOldPlanDoesNotTakeTheNewOneBack) {
  World world(2, 1);
  world.given = plan::HealthVector(2);
  const auto callBoth = [&] {
    for (const int rank : {1, 0}) {
      world.call(rank);
      while (!world.orders.empty()) world.makePlan(0);
    }
  };
  callBoth();
  for (const int rank : {0, 1}) world.call(rank);  // both tell their plans
  ASSERT_EQ(world.letters.size(), 1u);
  world.deliver(0);
  ASSERT_EQ(world.letters.size(), 1u);
  const World::Letter late = world.letters[0];
  world.letters.clear();
  ASSERT_EQ(late.word.kind, PlanWord::Kind::kAgreed);

  world.given[1] = {512, 512};
  world.rank(0).planner().onTick(&world.given, world.now += 50ms);
  for (int i = 0; i < 20; ++i) {
    world.deliverAll();
    while (!world.orders.empty()) world.makePlan(0);
    world.rank(0).planner().onTick(&world.given, world.now += 1ms);
  }
  ASSERT_EQ(world.rank(1).planner().epoch(), 1u);
  callBoth();
  for (const int rank : {0, 1}) world.call(rank);
  world.deliverAll();
  world.letters.push_back(late);
  world.deliverAll();
  for (const int rank : {0, 1}) {
    if (world.rank(rank).calls == 0) world.call(rank);
    EXPECT_EQ(world.rank(rank).calls, 1u) << "rank " << rank;
  }
}

TEST(GroupPlannerTest, ACallThatNotAllMakeWaits) {
  World world(3, 1);
  world.given = plan::HealthVector(3);
  for (int round = 0; round < 50; ++round) {
    for (const int i : {0, 2}) world.call(i);
    while (!world.orders.empty()) world.makePlan(0);
    world.deliverAll();
  }
  EXPECT_EQ(world.rank(0).calls, 0u);
  EXPECT_EQ(world.rank(2).calls, 0u);
  world.settle(3);
  EXPECT_EQ(world.rank(0).calls, 3u);
}

TEST(GroupPlannerTest, OperationsGoOnWhileARankPlansAndOneThatNeverDoesIsNotWaitedFor) {
  World world(2, 1);
  world.given = plan::HealthVector(2);
  world.settle(60);  // all sizes are in use
  world.given[1] = {512, 512};
  const auto tick = [&] {
    world.now += 50ms;
    world.rank(0).planner().onTick(&world.given, world.now);
    world.deliverAll();
    std::erase_if(world.orders, [](const World::Order& order) { return order.rank == 1; });
    while (!world.orders.empty()) world.makePlan(0);
  };
  tick();
  for (int i = 0; i < 100; ++i) {
    tick();
    for (const int rank : {0, 1}) world.call(rank);
  }
  EXPECT_EQ(world.rank(1).calls, 160u) << "nobody is held by a change that is not ready";
  EXPECT_EQ(world.rank(1).planner().epoch(), 0u);
  for (int i = 0; i < 200; ++i) tick();
  world.settle(180);
  EXPECT_EQ(world.rank(1).calls, 180u);
}

TEST(PlanWordTest, OnlyWholeWordsAreRead) {
  PlanWord word{.kind = PlanWord::Kind::kHealth, .about = 3, .count = 2};
  word.entries[1] = {5, 6};
  const auto bytes = word.bytes();
  const auto parsed = PlanWord::parse(bytes);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->about, 3u);
  EXPECT_EQ(parsed->entries[1].receive, 6);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(PlanWord::parse(bytes.first(length)).has_value()) << length;
  }
  word.count = PlanWord::kMostEntries + 1;
  EXPECT_FALSE(PlanWord::parse(std::as_bytes(std::span(&word, 1))).has_value());
  word = {.communicator = 1, .kind = PlanWord::Kind::kHealth};
  EXPECT_FALSE(PlanWord::parse(word.bytes()).has_value());
  word = {.kind = static_cast<PlanWord::Kind>(3)};
  EXPECT_FALSE(PlanWord::parse(word.bytes()).has_value());
}

}  // namespace
}  // namespace faultline::comm

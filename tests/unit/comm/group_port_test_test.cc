#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "tests/unit/comm/group_world.h"

namespace faultline::comm {
namespace {

TEST(GroupPortTestTest, CallsThatAreLateHaveThePortsTested) {
  Job job(4);
  job.ports[2] = {0.5, 0.5};
  job.run(3s);
  EXPECT_EQ(job.tests(), 0u) << "calls take as long as planned";
  job.taken = 15ms;
  job.run(1s);
  plan::HealthVector expected(4);
  expected[2] = {512, 512};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(job.health(i), expected);
    EXPECT_EQ(job.rank(i).planner().epoch(), 1u);
  }
  EXPECT_EQ(job.tests(), 1u);
  EXPECT_EQ(job.rounds.size(), 4u) << "a glance, and three for one slow rank";
  ASSERT_EQ(job.reports.size(), 1u);
  const TestReport& report = job.reports[0];
  EXPECT_EQ(report.rounds, 4);
  EXPECT_TRUE(report.complete);
  EXPECT_TRUE(report.changed);
  EXPECT_GT(report.lateness.value_or(0), 1.08);
  EXPECT_GT(report.operation, 250u);
}

// Two of the three paths of a slow port look slower than it is: they are looked at again.
TEST(GroupPortTestTest, AShiftThatComesAgainIsAnotherRound) {
  Job job(4);
  job.ports[2].send = 0.75;
  job.spoils = [](const TestRound& round, int from) {
    return from == 2 && (round.round == 2 || round.round == 4) ? 0.7 : 1.0;
  };
  job.run(3s);
  job.taken = 15ms;
  job.run(1s);
  plan::HealthVector expected(4);
  expected[2].send = 768;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(job.health(i), expected);
  EXPECT_EQ(job.tests(), 1u);
  ASSERT_EQ(job.shifts.size(), 1u + 5u) << "a glance, three, and two again";
  EXPECT_TRUE(job.reports.at(0).complete);
  const std::vector<int> exact(job.shifts.begin() + 1, job.shifts.end());
  EXPECT_EQ(std::set(exact.begin(), exact.end()).size(), 3u);
}

// Beside a port at half one that is a little slow must be found twice: the second test comes soon,
// and begins with what was sure.
TEST(GroupPortTestTest, WhatATestMayBeWrongAboutIsTestedAgainSoon) {
  for (const bool slow : {true, false}) {
    Job job(4);
    job.ports[1].send = 0.5;
    job.ports[2].send = 0.75;
    job.run(3s);
    job.taken = 15ms;
    for (int i = 0; i < 50 && job.tests() == 0; ++i) job.run(20ms);
    job.taken = 10ms;  // no other hint
    job.run(1s);
    plan::HealthVector expected(4);
    expected[1].send = 512;
    EXPECT_EQ(job.health(3), expected);
    EXPECT_EQ(job.tests(), 1u);
    if (slow) expected[2].send = 768;
    job.ports[2].send = slow ? 0.75 : 1;
    job.run(3s);
    EXPECT_EQ(job.tests(), 2u) << "long before a slow port is looked at again";
    EXPECT_EQ(job.health(3), expected);
    job.run(3s);
    EXPECT_EQ(job.tests(), 2u) << "and then it is sure";
  }
}

// An answer of the round before with the same shift says nothing of the one under way.
TEST(GroupPortTestTest, AnswersOfAnEarlierRoundWithTheSameShiftDoNotCount) {
  constexpr int kRanks = 4;
  ProbeLead lead(1, plan::PortTest(std::vector<plan::PortShare>(kRanks), 1), kRanks, std::nullopt,
                 TimePoint{});
  std::map<int, std::uint32_t> latest;  // by shift: its round
  int again = 0;
  for (int rank = 0; rank < kRanks; ++rank) lead.answer(rank, 1, 0, 0);
  while (const auto round = lead.next(TimePoint{})) {
    const auto before = latest.find(round->shift);
    if (before != latest.end()) {
      ++again;
      for (int rank = 0; rank < kRanks; ++rank) lead.answer(rank, 1, before->second, 0.1);
      ASSERT_FALSE(lead.allAnswered()) << "round " << round->round;
    }
    latest[round->shift] = round->round;
    for (int to = 0; to < kRanks; ++to) {
      const bool slow = (to + kRanks - round->shift) % kRanks == 2;
      const double spoilt = round->round == 2 || round->round == 4 ? 0.7 : 1;
      lead.answer(to, 1, round->round, slow ? 0.75 * spoilt : 1);
    }
    ASSERT_TRUE(lead.allAnswered());
  }
  EXPECT_GE(again, 1 + 2) << "after the glance, and after three";
  EXPECT_EQ(lead.ports().shares()[2].send, 0.75);
}

TEST(GroupPortTestTest, TestsThatFindNothingBecomeRare) {
  Job job(4);
  job.taken = 15ms;
  job.run(130s);
  EXPECT_EQ(job.tests(), 7u) << "at once, after 2, 6, 14, 30, 62 and 126 s";
  EXPECT_EQ(job.rounds.size(), 7u);
  EXPECT_EQ(job.rank(3).planner().epoch(), 0u);
}

TEST(GroupPortTestTest, APortThatIsFasterThanPlannedForIsTestedAgain) {
  Job job(4);
  job.ports[1].receive = 0.25;
  job.taken = 20ms;
  job.run(1100ms);
  ASSERT_EQ(job.health(3)[1], (plan::Health{1024, 256}));
  job.taken = 10ms;
  job.ports[1].receive = 1;
  job.seen[1].receive = 270;
  job.run(2s);
  EXPECT_EQ(job.tests(), 1u) << "hardly faster";
  job.seen[1].receive = 400;
  job.run(2s);
  EXPECT_EQ(job.health(3), plan::HealthVector(4));
  EXPECT_EQ(job.tests(), 2u);
}

TEST(GroupPortTestTest, ASlowPortIsTestedAgainWithoutAnyHint) {
  Job job(4);
  job.ports[1].send = 0.5;
  job.taken = 20ms;
  job.run(1100ms);
  ASSERT_EQ(job.health(3)[1], (plan::Health{512, 1024}));
  job.taken = 10ms;
  job.ports[1].send = 1;
  job.run(5s);
  EXPECT_EQ(job.tests(), 1u);
  job.run(7s);
  EXPECT_EQ(job.tests(), 2u);
  EXPECT_EQ(job.health(3), plan::HealthVector(4));
}

TEST(GroupPortTestTest, LostRailsCountAtOnceWithoutATest) {
  Job job(4);
  job.ports[2].send = 0.5;
  job.taken = 20ms;
  job.run(1100ms);
  job.taken = 10ms;
  job.seen[2].live = job.seen[3].live = 512;
  job.run(1100ms);
  plan::HealthVector expected(4);
  expected[2] = {256, 512};
  expected[3] = {512, 512};
  EXPECT_EQ(job.health(1), expected);
  EXPECT_EQ(job.tests(), 1u);
}

TEST(GroupPortTestTest, HowLongSmallCallsTakeSaysNothing) {
  Job job(4);
  job.taken = 15ms;
  job.run(100ms);
  ASSERT_EQ(job.tests(), 0u);
  Job small(4);
  small.bandwidthShare = 0.2;
  small.taken = 15ms;
  small.run(10s);
  EXPECT_EQ(small.tests(), 0u);
}

TEST(GroupPortTestTest, ATestWhoseAnswersDoNotComeIsGivenUp) {
  Job job(3);
  job.givesUp = true;
  job.ports[1] = {0.5, 0.5};
  job.taken = 15ms;
  job.deaf = 2;
  job.run(5s);
  EXPECT_GT(job.rank(1).calls, 100u) << "operations go on";
  EXPECT_EQ(job.rank(1).calls, job.rank(2).calls);
  EXPECT_EQ(job.health(0), plan::HealthVector(3));
  ASSERT_EQ(job.reports.size(), 1u);
  EXPECT_FALSE(job.reports[0].complete);
  EXPECT_GE(job.reports[0].took, ProbeLead::kRoundPatience);
  EXPECT_FALSE(job.rank(1).planner().testing());
  job.deaf = -1;
  std::swap(job.letters, job.kept);
  job.run(20s);
  EXPECT_EQ(job.health(2)[1], (plan::Health{512, 512}));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(job.rank(i).planner().testing());
}

// A rank that is silent when the others are to stop: the test does not begin, and its number is the
// next one's.
TEST(GroupPortTestTest, ATestThatNeverBeganIsNotInTheWayOfTheNext) {
  Job job(3);
  job.givesUp = true;
  job.ports[1] = {0.5, 0.5};
  job.taken = 15ms;
  job.deaf = 2;
  job.deafToPrepare = true;
  job.run(2s);
  ASSERT_GE(job.reports.size(), 1u);
  EXPECT_FALSE(job.reports[0].complete);
  job.deaf = -1;
  job.kept.clear();
  job.run(20s);
  EXPECT_EQ(job.health(2)[1], (plan::Health{512, 512}));
  EXPECT_TRUE(job.reports.back().complete);
  EXPECT_LT(job.reports.back().took, ProbeLead::kRoundPatience);
}

TEST(GroupPortTestTest, WhateverTheOrderAllTestAtTheSameOperationAndNobodyWaitsForEver) {
  std::uint64_t rounds = 0, epochs = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Job world(2 + static_cast<int>(seed % 4), seed);
    world.predicted = seed % 3 == 0 ? 0.01 : 0.1;
    world.givesUp = true;  // rounds take seconds now and then
    for (int i = 0; i < 4000 && !testing::Test::HasFatalFailure(); ++i) world.step();
    std::size_t furthest = 0;
    for (int i = 0; i < world.size(); ++i) furthest = std::max(furthest, world.rank(i).calls);
    world.settle(furthest + 20);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(world.failure.ok()) << world.failure.message();
    for (int i = 0; i < world.size(); ++i) {
      ASSERT_EQ(world.rank(i).calls, furthest + 20) << "rank " << i << " is held";
      ASSERT_EQ(world.health(i), world.health(0));
    }
    rounds += world.rounds.size();
    epochs += world.rank(0).planner().epoch();
  }
  EXPECT_GT(rounds, 300u);
  EXPECT_GT(epochs, 100u);
}

}  // namespace
}  // namespace faultline::comm

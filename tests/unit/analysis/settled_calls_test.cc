#include "harness/analysis/settled_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/call_bound.h"
#include "harness/analysis/call_rows.h"
#include "harness/record/call_table.h"
#include "harness/scenario/reader.h"

// Calls of a strategy that plans: from which one on their times count, and what they are compared
// with.

namespace faultline::run {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kSweepRanks = 4;
constexpr std::int64_t kCallBytes = 8 << 20;
constexpr double kStrikes = 250;  // in the third call

/// One rail per node; that of node 1 is halved in the third of six calls of 8 MiB.
scenario::Scenario halvedSweep(const std::string& strategy,
                               const std::string& operation = "all_reduce") {
  scenario::ReadResult read = scenario::readScenario(
      "version: 1\nname: s\ncluster: {nodes: 4, rails: 1, rail_rate: 400Mbit}\n"
      "workload: {kind: collective, iterations: 6, collective: {sizes: 8MiB, operations: " +
          operation + "}}\nstrategies: [" + strategy +
          "]\nfaults: [{kind: throttle, rate: 50%, target: {node: 1, rail: 0}, at: 250ms, "
          "until: end}]\n",
      "s");
  EXPECT_TRUE(read.ok());
  return *std::move(read.scenario);
}

reports::AppliedPlan planFor(double at_ms, double share, const std::string& algorithm = "optcc",
                             std::int64_t bytes = kCallBytes) {
  reports::AppliedPlan made;
  made.at_ms = at_ms;
  made.elements = bytes / 4;
  made.bytes = bytes;
  made.algorithm = algorithm;
  made.segments = 8;
  made.health.resize(kSweepRanks);
  made.health[1] = {share, share};
  return made;
}

/// Six calls of 100 ms, one after the other, each slower by 1 ms than the one before.
reports::Run sixCalls(const scenario::Scenario& scenario, std::vector<reports::AppliedPlan> plans) {
  reports::Run run;
  run.strategy = scenario.strategies.front().name;
  run.goodput_mbit = 400;
  run.plans = std::move(plans);
  reports::AppliedFault fault;
  fault.kind = "throttle";
  fault.target = {1, 0, std::nullopt, ""};
  fault.start_ms = kStrikes;
  run.faults = {fault};
  CallTable table(scenario);
  for (int call = 0; call < 6; ++call) {
    run.iterations.push_back({call, 100.0 * call, 99});
    for (int rank = 0; rank < kSweepRanks; ++rank)
      table.ended(call, 200 + call, 10, rank == 0 ? 1 : 0);
  }
  run.collectives = rowsOf(table, fatesOf(scenario, run));
  compareWithModels(scenario, run);
  return run;
}

TEST(SettledCallsTest, TheyFollowTheFirstOneWithAPlanThatFits) {
  const auto scenario = halvedSweep("optcc");
  // Whole until the third call; known in the middle of the fifth.
  const reports::Run run = sixCalls(scenario, {planFor(-50, 1, "ring"), planFor(400, 0.48)});
  EXPECT_THAT(unsettledCalls(scenario, run), ElementsAre(2, 3, 4));
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_EQ(row.n, 1);
  EXPECT_EQ(row.left_out, 3);
  EXPECT_EQ(row.untouched, 2) << "which the fault did not meet";
  EXPECT_EQ(row.struck, 1);
  EXPECT_FALSE(row.unsettled);
  EXPECT_EQ(row.wrong_elements, 6) << "of all calls";
  EXPECT_EQ(row.checked_elements, 6 * kSweepRanks * 10);
}

TEST(SettledCallsTest, WhatIsBeingTriedIsNotSettled) {
  const auto scenario = halvedSweep("auto");
  std::vector<reports::AppliedPlan> plans{planFor(-50, 1, "ring"), planFor(210, 0.5, "ring"),
                                          planFor(350, 0.5)};
  plans[0].tried = plans[1].tried = true;
  EXPECT_THAT(unsettledCalls(scenario, sixCalls(scenario, plans)), ElementsAre(0, 1, 2, 3));
}

TEST(SettledCallsTest, OneThatFitsWhatWasThereBeforeDoesNotFit) {
  const auto scenario = halvedSweep("auto");
  EXPECT_THAT(unsettledCalls(scenario, sixCalls(scenario, {planFor(-50, 1)})),
              ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(unsettledCalls(scenario, sixCalls(scenario, {planFor(-50, 0.5)})),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(unsettledCalls(scenario, sixCalls(scenario, {planFor(-50, 0.7)})),
              ElementsAre(0, 1, 2, 3, 4, 5))
      << "further off than it may be";
}

TEST(SettledCallsTest, OnlyPlansOfTheirSizeCount) {
  const auto scenario = halvedSweep("optcc");
  const reports::Run run = sixCalls(scenario, {planFor(-50, 0.5, "optcc", 1024)});
  EXPECT_EQ(unsettledCalls(scenario, run).size(), 6u);
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_TRUE(row.unsettled) << "which is said,";
  EXPECT_EQ(row.n, 4) << "and then all struck calls count";
  EXPECT_EQ(row.left_out, 0);
  EXPECT_FALSE(row.model) << "nobody knows what was run";
}

TEST(SettledCallsTest, WhereNothingIsPlannedAllCallsCount) {
  const auto balance = halvedSweep("balance");
  EXPECT_THAT(unsettledCalls(balance, sixCalls(balance, {})), IsEmpty());
  const auto other = halvedSweep("optcc", "reduce_scatter");
  const reports::Run run = sixCalls(other, {});
  EXPECT_THAT(unsettledCalls(other, run), IsEmpty());
  EXPECT_EQ(run.collectives.front().n, 4);
  EXPECT_EQ(run.collectives.front().untouched, 2);
}

TEST(SettledCallsTest, OfOtherCollectivesThoseBeforeAnotherAlgorithm) {
  const auto scenario = halvedSweep("optcc", "all_gather");
  const auto planned = [](double at_ms, double share, const std::string& algorithm) {
    reports::AppliedPlan plan = planFor(at_ms, share, algorithm);
    plan.collective = "all_gather";
    return plan;
  };
  const reports::Run run =
      sixCalls(scenario, {planned(-50, 1, "ring_all_gather"), planFor(-50, 1, "tree"),
                          planned(300, 0.5, "relay_all_gather")});
  EXPECT_THAT(unsettledCalls(scenario, run), ElementsAre(0, 1, 2));
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_EQ(row.n, 3);
  // Both ways slow, relays bring nothing: the slow rank has to receive three blocks.
  EXPECT_DOUBLE_EQ(*row.bound, 2);
  EXPECT_GE(*row.model, 2);
  const reports::Run same = sixCalls(
      scenario, {planned(-50, 1, "ring_all_gather"), planned(300, 0.5, "ring_all_gather")});
  EXPECT_THAT(unsettledCalls(scenario, same), IsEmpty()) << "a ring is a ring";

  const auto chain = halvedSweep("optcc", "broadcast");
  std::vector<reports::AppliedPlan> plans{planFor(-50, 1, "chain_broadcast"),
                                          planFor(300, 0.5, "chain_broadcast"),
                                          planFor(450, 0.48, "chain_broadcast")};
  for (reports::AppliedPlan& plan : plans) plan.collective = "broadcast";
  EXPECT_THAT(unsettledCalls(chain, sixCalls(chain, plans)), ElementsAre(0, 1, 2))
      << "the order is another one, then the same";
}

/// Which of six calls of a row count.
CountedCalls countedOfSix(const CallFates& fates) { return countedOf({6, 7, 8, 9, 10, 11}, fates); }

TEST(CountedCallsTest, WhereAFaultMetSomeOthersDoNotCount) {
  const CountedCalls counted = countedOfSix({.unsettled = {}, .struck = {3, 7, 8, 20}});
  EXPECT_THAT(counted.calls, ElementsAre(7, 8));
  EXPECT_EQ(counted.untouched, 4);
  EXPECT_EQ(counted.struck, 2);
}

TEST(CountedCallsTest, WhereAFaultMetNoneOrAllAllCount) {
  EXPECT_EQ(countedOfSix({.unsettled = {}, .struck = {5}}).calls.size(), 6u);
  EXPECT_EQ(countedOfSix({.unsettled = {}, .struck = {5}}).struck, 0);
  const CountedCalls all = countedOfSix({.unsettled = {}, .struck = {6, 7, 8, 9, 10, 11}});
  EXPECT_EQ(all.calls.size(), 6u);
  EXPECT_EQ(all.struck, 6);
  EXPECT_EQ(all.untouched, 0);
}

// Else a strategy that plans would leave out the very calls that the fault cost it.
TEST(CountedCallsTest, NothingSettlesWhereTheFaultIsOverBeforeTheLastCall) {
  const CountedCalls over = countedOfSix({.unsettled = {7, 8}, .struck = {7, 8, 9}});
  EXPECT_THAT(over.calls, ElementsAre(7, 8, 9));
  EXPECT_EQ(over.leftOut, 0);
  const CountedCalls stays = countedOfSix({.unsettled = {9}, .struck = {9, 10, 11}});
  EXPECT_THAT(stays.calls, ElementsAre(10, 11));
  EXPECT_EQ(stays.leftOut, 1);
  EXPECT_EQ(stays.untouched, 3);
}

TEST(StruckCallsTest, AreThoseThatWereUnderWayWhileAFaultWasThere) {
  reports::Run run;
  for (int call = 0; call < 5; ++call) run.iterations.push_back({call, 100.0 * call, 99});
  run.unfinished = reports::Iteration{5, 500, 1000};
  reports::AppliedFault& fault = run.faults.emplace_back();
  fault.start_ms = 150;
  fault.end_ms = 200;
  EXPECT_THAT(struckCalls(run), ElementsAre(1)) << "it ended when the next one began";
  fault.end_ms = 201;
  EXPECT_THAT(struckCalls(run), ElementsAre(1, 2));
  fault.start_ms = 450;
  fault.end_ms.reset();
  EXPECT_THAT(struckCalls(run), ElementsAre(4, 5)) << "until the end, also of what it cut off";
}

TEST(SettledCallsTest, AHangOfOneCallOfManyIsWhatTheRowSays) {
  const auto scenario = halvedSweep("fail_stop");
  reports::Run run;
  run.strategy = "fail_stop";
  CallTable table(scenario);
  for (int call = 0; call < 6; ++call) {
    run.iterations.push_back({call, 100.0 * call, 99});
    for (int rank = 0; rank < kSweepRanks; ++rank) table.ended(call, 100, 1, 0);
  }
  table.interrupted(3, 1231);
  run.iterations[3].ms = 1231;
  reports::AppliedFault& fault = run.faults.emplace_back();
  fault.start_ms = 350;
  fault.end_ms = 380;
  const reports::CollectiveRow row = rowsOf(table, fatesOf(scenario, run)).front();
  EXPECT_EQ(row.n, 1);
  EXPECT_EQ(row.p50_ms, 1231) << "the median of all is 100";
  EXPECT_EQ(row.checked_elements, 6 * kSweepRanks);
}

TEST(SettledCallsTest, BoundAndModelAreThoseOfTheCallsThatCount) {
  const auto scenario = halvedSweep("optcc");
  const reports::Run run = sixCalls(
      scenario, {planFor(-50, 1, "ring"), planFor(300, 0.5)});  // the third and fourth do not
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_EQ(row.left_out, 2);
  EXPECT_THAT(row.send, ElementsAre(1, 0.5, 1, 1)) << "not those of the calls before the fault";

  reports::Run after = sixCalls(scenario, {planFor(300, 0.5)});
  const reports::CollectiveRow& settled = after.collectives.front();
  EXPECT_EQ(settled.n, 2) << "without a plan before the fault";
  EXPECT_THAT(settled.send, ElementsAre(1, 0.5, 1, 1));
  EXPECT_THAT(*settled.bound, DoubleNear(4.0 / 3, 1e-9));
  ASSERT_TRUE(settled.model);
  EXPECT_GT(*settled.model, *settled.bound);
  EXPECT_LT(*settled.model, 1.2 * *settled.bound) << "optcc, not the ring, which takes 2";

  const reports::Run ring = sixCalls(scenario, {planFor(300, 0.5, "ring")});
  EXPECT_THAT(*ring.collectives.front().model, DoubleNear(2, 1e-6));
}

TEST(SettledCallsTest, TheModelOfAPlanIsAsCloseToTheBoundAsItsPipelineAllows) {
  // Eight ranks, two at a half, on one rail: where the executor's window of three messages would
  // make the model, whose ports queue nothing, slower by a sixth.
  constexpr int kEightRanks = 8, kSegments = 64;
  scenario::ReadResult read = scenario::readScenario(
      "version: 1\nname: s\ncluster: {nodes: 8, rails: 1, rail_rate: 200Mbit}\n"
      "workload: {kind: collective, iterations: 3, collective: {sizes: 8MiB}}\n"
      "strategies: [optcc]\nfaults:\n"
      "  - {kind: throttle, rate: 50%, target: {node: 1, rail: 0}, at: 0s, until: end}\n"
      "  - {kind: throttle, rate: 50%, target: {node: 3, rail: 0}, at: 0s, until: end}\n",
      "s");
  ASSERT_TRUE(read.ok());
  const scenario::Scenario& scenario = *read.scenario;
  reports::Run run;
  run.strategy = "optcc";
  run.goodput_mbit = 190;
  reports::AppliedPlan& plan = run.plans.emplace_back(planFor(-1, 0.5));
  plan.segments = kSegments;
  plan.health.resize(kEightRanks);
  plan.health[3] = plan.health[1];
  CallTable table(scenario);
  for (const int node : {1, 3}) {
    reports::AppliedFault& fault = run.faults.emplace_back();
    fault.kind = "throttle";
    fault.target = {node, 0, std::nullopt, ""};
  }
  for (int call = 0; call < 3; ++call) {
    run.iterations.push_back({call, 800.0 * call, 799});
    for (int rank = 0; rank < kEightRanks; ++rank) table.ended(call, 800, 1, 0);
  }
  run.collectives = rowsOf(table, fatesOf(scenario, run));
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  ASSERT_TRUE(row.bound && row.model);
  EXPECT_NEAR(*row.bound, 8.0 / 7, 1e-9);
  EXPECT_GE(*row.model, *row.bound);
  EXPECT_LE(*row.model, *row.bound * (1 + 1.0 / kSegments + 0.01));
}

}  // namespace
}  // namespace faultline::run

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/call_bound.h"
#include "harness/analysis/call_rows.h"
#include "harness/record/call_table.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"
#include "tests/support/csv_data.h"

// What becomes of the calls of a sweep.

namespace faultline::run {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr int kRanks = 4;

scenario::Scenario sweep(const std::string& collective, const std::string& more = "") {
  scenario::ReadResult read = scenario::readScenario(
      "version: 1\nname: s\ncluster: {nodes: 4, rails: 2, rail_rate: 400Mbit}\n"
      "workload: {kind: collective, iterations: 3, collective: {" +
          collective + "}}\nstrategies: [balance]\n" + more,
      "s");
  EXPECT_TRUE(read.ok());
  return *std::move(read.scenario);
}

TEST(CallTableTest, ACallTakesAsLongAsItsSlowestRank) {
  CallTable table(sweep("sizes: 1KiB, place: both"));
  for (int call = 0; call < 5; ++call) {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (call == 4 && rank == 3) continue;  // the run ended here
      table.ended(call, 10 * (call + 1) + rank, 256, rank == 1 ? 2 : 0);
    }
  }
  const auto rows = rowsOf(table);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].operation, "all_reduce");
  EXPECT_EQ(rows[0].size_bytes, 1024);
  EXPECT_EQ(rows[0].count, 256);
  EXPECT_EQ(rows[0].dtype, "f32");
  EXPECT_EQ(rows[0].op, "sum");
  EXPECT_FALSE(rows[0].in_place);
  EXPECT_TRUE(rows[1].in_place);
  EXPECT_EQ(rows[0].n, 3);
  EXPECT_EQ(rows[0].p50_ms, 23);
  EXPECT_EQ(rows[0].min_ms, 13);
  EXPECT_EQ(rows[0].max_ms, 33);
  EXPECT_EQ(rows[0].checked_elements, 3 * kRanks * 256);
  EXPECT_EQ(rows[0].wrong_elements, 3 * 2);
  EXPECT_EQ(rows[1].n, 1) << "a call that some rank has not ended is no measurement";
  EXPECT_EQ(rows[1].wrong_elements, 2 * 2) << "but what was wrong in it counts";
}

TEST(CallTableTest, WhatIsDoneAgainAfterARestartCountsOnce) {
  CallTable table(sweep("sizes: 1KiB"));
  const auto all = [&](int call, double ms) {
    for (int rank = 0; rank < kRanks; ++rank) table.ended(call, ms, 1, 0);
  };
  all(0, 10);
  all(1, 500);
  table.ended(2, 10, 1, 1);  // killed before the others had ended
  table.cutOff();
  all(1, 20);
  all(2, 30);
  const auto row = rowsOf(table).front();
  EXPECT_EQ(row.n, 3);
  EXPECT_EQ(row.max_ms, 30);
  EXPECT_EQ(row.wrong_elements, 0);
  EXPECT_EQ(row.checked_elements, 3 * kRanks);
}

TEST(CallTableTest, BandwidthsAreThoseOfNcclTests) {
  CallTable table(
      sweep("sizes: 1MiB, operations: [all_reduce, reduce_scatter, all_gather, broadcast, reduce, "
            "all_to_all, send_recv]"));
  for (int call = 0; call < 7 * 3; ++call) {
    for (int rank = 0; rank < kRanks; ++rank) table.ended(call, 1, 1, 0);
  }
  std::vector<double> factors;
  for (const auto& row : rowsOf(table)) {
    EXPECT_DOUBLE_EQ(row.algbw, 1.048576);
    factors.push_back(row.busbw / row.algbw);
  }
  EXPECT_THAT(factors, ElementsAre(1.5, 0.75, 0.75, 1, 1, 0.75, 1));
}

TEST(CallTableTest, OfOtherWorkloadsThereAreNoRows) {
  scenario::Scenario training = sweep("");
  training.workload.kind = scenario::findWorkloadKind("training");
  CallTable table(training);
  table.ended(0, 1, 1, 0);
  EXPECT_TRUE(rowsOf(table).empty());
}

/// Calls of 100 ms, one after the other, and a goodput of 100 Mbit for each of two rails.
reports::Run runOf(const scenario::Scenario& scenario, double ms = 100) {
  reports::Run run;
  run.strategy = "balance";
  run.goodput_mbit = 100;
  CallTable table(scenario);
  const auto cells = cellsOf(scenario.workload.collective).size();
  for (int call = 0; call < 3 * static_cast<int>(cells); ++call) {
    run.iterations.push_back({call, ms * call, ms});
    for (int rank = 0; rank < kRanks; ++rank) table.ended(call, ms, 1, 0);
  }
  run.collectives = rowsOf(table);
  return run;
}

reports::AppliedFault fault(const std::string& kind, int rail, double start,
                            std::optional<double> end = std::nullopt) {
  reports::AppliedFault applied;
  applied.kind = kind;
  applied.target = {1, rail, std::nullopt, ""};
  applied.start_ms = start;
  applied.end_ms = end;
  return applied;
}

const std::string kHalfANode =
    "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 0s, until: end}]\n";

TEST(CallBoundTest, TheIdealIsTheBytesOfAPortAtTheMeasuredGoodput) {
  const auto scenario = sweep("sizes: 10MB");
  reports::Run run = runOf(scenario);
  compareWithModels(scenario, run);
  // 1.5 x 10 MB over 2 x 12.5 MB/s.
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_DOUBLE_EQ(*row.ideal_ms, 600);
  EXPECT_DOUBLE_EQ(*row.time_over_ideal, 100.0 / 600);
  EXPECT_DOUBLE_EQ(*row.bound, 1);
  EXPECT_THAT(*row.model, DoubleNear(1, 1e-6));
  EXPECT_TRUE(row.mis_measured) << "six times faster than possible";
  EXPECT_FALSE(row.latency_only);
  EXPECT_THAT(row.send, ElementsAre(1, 1, 1, 1));
}

TEST(CallBoundTest, AFaultThatLastsIsInBoundAndModel) {
  const auto scenario = sweep("sizes: 10MB", kHalfANode);
  reports::Run run = runOf(scenario, 800);
  run.faults = {fault("port_down", 0, 3)};
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_THAT(row.send, ElementsAre(1, 0.5, 1, 1));
  EXPECT_DOUBLE_EQ(*row.bound, 4.0 / 3);
  EXPECT_THAT(*row.model, DoubleNear(2, 1e-6)) << "a ring goes at its slowest port";
  EXPECT_DOUBLE_EQ(*row.time_over_bound, 1);
  EXPECT_THAT(*row.time_over_model, DoubleNear(2.0 / 3, 1e-6));
  EXPECT_FALSE(row.mis_measured);
}

TEST(CallBoundTest, AChainPassesOnSliceBySlice) {
  const auto scenario = sweep("sizes: 8MiB, operations: [broadcast, reduce]");
  reports::Run run = runOf(scenario);
  compareWithModels(scenario, run);
  constexpr double kSlices = 8 << 2;
  for (const reports::CollectiveRow& row : run.collectives) {
    EXPECT_THAT(*row.model, DoubleNear((kSlices + kRanks - 2) / kSlices, 1e-3)) << row.operation;
  }
}

TEST(CallBoundTest, BandwidthsThatChangeHaveNoBound) {
  const std::string later =
      "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, duration: 1s}]\n";
  const auto scenario = sweep("sizes: 10MB", later);
  reports::Run run = runOf(scenario, 800);
  run.faults = {fault("port_down", 0, 1000, 2000)};
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_TRUE(row.send.empty());
  EXPECT_FALSE(row.bound || row.model || row.time_over_bound);
  EXPECT_TRUE(row.time_over_ideal) << "that needs no model";
}

// 7.5 MB through each port, of 400 Mbit/s, which lets 100 kB pass at once: 1.33 % of it.
TEST(CallBoundTest, WhatAFullBucketLetsPassAtOnceIsNoMistake) {
  const auto scenario = sweep("sizes: 10MB");
  const auto rowAt = [&](double share_of_ideal) {
    reports::Run run = runOf(scenario, 600 * share_of_ideal);
    compareWithModels(scenario, run);
    return run.collectives.front();
  };
  const reports::CollectiveRow row = rowAt(0.978);
  EXPECT_DOUBLE_EQ(*row.bound, 1);
  EXPECT_THAT(*row.least, DoubleNear(1 - 100.0 / 7500, 1e-6));
  EXPECT_DOUBLE_EQ(*row.time_over_bound, 0.978) << "the burst is no part of it";
  EXPECT_FALSE(row.mis_measured) << "1 % for what measurements vary";
  EXPECT_TRUE(rowAt(0.975).mis_measured);
}

TEST(CallBoundTest, WithoutGoodputThereIsNothingToCompareWith) {
  const auto scenario = sweep("sizes: 10MB");
  reports::Run run = runOf(scenario);
  run.goodput_mbit.reset();
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_FALSE(row.ideal_ms || row.time_over_ideal || row.time_over_bound);
  EXPECT_FALSE(row.mis_measured);
  EXPECT_TRUE(row.bound && row.least) << "ratios, of themselves";
}

TEST(CallBoundTest, SmallCallsHaveNoTarget) {
  const auto scenario = sweep("sizes: 64KiB");
  reports::Run run = runOf(scenario, 0.1);
  compareWithModels(scenario, run);
  EXPECT_TRUE(run.collectives.front().latency_only);
  EXPECT_FALSE(run.collectives.front().mis_measured);
}

TEST(CallBoundTest, OnlyWhatTheStrategyRunsIsItsModel) {
  const auto scenario = sweep("sizes: 10MB");
  reports::Run run = runOf(scenario);
  run.strategy = "hot_repair";  // pinned: not what the model of ports says
  compareWithModels(scenario, run);
  EXPECT_FALSE(run.collectives.front().model);
  EXPECT_TRUE(run.collectives.front().bound);
}

/// r2_allreduce, with a plan of so many segments that says what is left of rank 1.
reports::Run r2Run(const scenario::Scenario& scenario, int segments, const std::string& algorithm) {
  reports::Run run = runOf(scenario, 800);
  run.strategy = algorithm;
  run.faults = {fault("port_down", 0, 3)};
  reports::AppliedPlan& plan = run.plans.emplace_back();
  plan.at_ms = -1;
  plan.communicator = 1;
  plan.bytes = run.collectives.front().size_bytes;
  plan.elements = run.collectives.front().count;
  plan.algorithm = algorithm;
  plan.segments = segments;
  plan.health.assign(kRanks, reports::PortHealth{1, 1});
  plan.health[1] = {0.5, 0.5};
  return run;
}

TEST(CallBoundTest, R2AllReduceIsHeldAgainstTheFormulaForItsChunks) {
  const auto scenario = sweep("sizes: 10MB", kHalfANode);
  reports::Run run = r2Run(scenario, 8, "r2_allreduce");
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  // 4 ranks, half of one lost: 1 + 2/3 (1 + 1/K), and 8 segments in two turns of three chunks
  // are 12.
  ASSERT_TRUE(row.formula && row.formula_chunks && row.time_over_formula);
  EXPECT_EQ(*row.formula_chunks, 12);
  EXPECT_DOUBLE_EQ(*row.formula, 1 + 2.0 / 3 * (1 + 1.0 / 12));
  EXPECT_DOUBLE_EQ(*row.time_over_formula, *row.time_over_ideal / *row.formula);
}

/// A sweep of `nodes` servers of two ranks and two rails, and a run of it in which node 1 has lost
/// one if `lost`; calls of 800 ms, of which the ranks of each planned `algorithm` in 8 segments.
struct ServerSweep {
  scenario::Scenario scenario;
  reports::Run run;
};
ServerSweep serversRun(int nodes, bool lost, const std::string& algorithm,
                       const std::string& operation = "all_reduce") {
  scenario::ReadResult read = scenario::readScenario(
      fmt::format("version: 1\nname: s\ncluster: {{nodes: {}, ranks_per_node: 2, rails: 2, "
                  "rail_rate: 400Mbit}}\nworkload: {{kind: collective, iterations: 3, collective: "
                  "{{sizes: 8MiB, operations: {}}}}}\nstrategies: [{}]\n{}",
                  nodes, operation, algorithm, lost ? kHalfANode : ""),
      "s");
  EXPECT_TRUE(read.ok());
  ServerSweep sweep{*std::move(read.scenario), {}};
  sweep.run.strategy = algorithm;
  sweep.run.goodput_mbit = 100;
  const int ranks = 2 * nodes;
  CallTable table(sweep.scenario);
  for (int call = 0; call < 3; ++call) {
    sweep.run.iterations.push_back({call, 800.0 * call, 800});
    for (int rank = 0; rank < ranks; ++rank) table.ended(call, 800, 1, 0);
  }
  sweep.run.collectives = rowsOf(table);
  if (lost) sweep.run.faults = {fault("port_down", 0, 3)};
  reports::AppliedPlan& plan = sweep.run.plans.emplace_back();
  plan.at_ms = -1;
  plan.communicator = 1;
  plan.bytes = sweep.run.collectives.front().size_bytes;
  plan.elements = sweep.run.collectives.front().count;
  plan.algorithm = algorithm;
  plan.segments = 8;
  plan.health.assign(static_cast<std::size_t>(ranks), reports::PortHealth{1, 1});
  if (lost) plan.health[2] = plan.health[3] = {0.5, 0.5};
  compareWithModels(sweep.scenario, sweep.run);
  return sweep;
}

TEST(CallBoundTest, ServersHaveTheBoundOfWhatTheirPortsMustCarry) {
  int compared = 0;
  for (const auto& [nodes, perNode, gone, sent] :
       test::csvRows<int, int, int, double>("server_loads.csv")) {
    if (perNode != 2) continue;
    const ServerSweep sweep = serversRun(nodes, gone == 1, "optcc_server");
    const reports::CollectiveRow& row = sweep.run.collectives.front();
    ASSERT_TRUE(row.bound && row.model && row.time_over_bound && row.time_over_model);
    const int ranks = 2 * nodes;
    const double ring = 2.0 * (ranks - 1) / ranks;  // the ideal: what a ring of all ranks sends
    EXPECT_NEAR(*row.bound, sent / (gone == 1 ? 0.5 : 1) / ring, 1e-9) << nodes << ", " << gone;
    // A pipeline of 8 segments; at two nodes there is none to speak of.
    EXPECT_GE(*row.model, *row.bound * (1 - 1e-6)) << nodes << ", " << gone;
    EXPECT_LE(*row.model, *row.bound * (1 + 1.0 / 8 + 0.02)) << nodes << ", " << gone;
    EXPECT_DOUBLE_EQ(*row.time_over_bound, *row.time_over_ideal / *row.bound);
    EXPECT_DOUBLE_EQ(*row.time_over_model, *row.time_over_ideal / *row.model);
    EXPECT_EQ(row.send.size(), static_cast<std::size_t>(nodes)) << "of nodes, not of ranks";
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

TEST(CallBoundTest, AFlatRingOfServersIsAsSlowAsItsSlowestServer) {
  const ServerSweep sweep = serversRun(4, true, "balance");
  EXPECT_THAT(*sweep.run.collectives.front().model, DoubleNear(2, 1e-3));
}

TEST(CallBoundTest, OfServersTheIdealIsWhatCrossesTheirPorts) {
  struct Row {
    std::string operation;
    double sent, bound;  // a node's port, in parts of the size; over that, with half a node left
  };
  // 4 x 2: of AllToAll each of two ranks sends six blocks of 1/8 to other nodes; the rings of eight
  // ranks cross a node once, and are bounded by what four nodes would send.
  for (const Row& row : {Row{"all_to_all", 12.0 / 8, 2},
                         {"reduce_scatter", 7.0 / 8, 3.0 / 4 * 2 / (7.0 / 8)},
                         {"all_gather", 7.0 / 8, 3.0 / 4 * 2 / (7.0 / 8)},
                         {"broadcast", 1, 2},
                         {"reduce", 1, 2},
                         {"send_recv", 1, 2}}) {
    const reports::CollectiveRow found =
        serversRun(4, true, "balance", row.operation).run.collectives.front();
    ASSERT_TRUE(found.ideal_ms && found.bound && found.model && found.time_over_bound)
        << row.operation;
    // Over two rails of 12.5 MB/s.
    EXPECT_NEAR(*found.ideal_ms, row.sent * (8 << 20) / 25e3, 1e-6) << row.operation;
    EXPECT_NEAR(*found.bound, row.bound, 1e-9) << row.operation;
    EXPECT_GE(*found.model, *found.bound * (1 - 1e-6)) << row.operation;
    EXPECT_EQ(found.send.size(), 4u) << "of nodes, not of ranks";
  }
}

TEST(CallBoundTest, OneServerHasNoPortsInUse) {
  const reports::CollectiveRow row =
      serversRun(1, false, "balance", "all_gather").run.collectives.front();
  EXPECT_FALSE(row.ideal_ms || row.bound || row.model);
  EXPECT_TRUE(row.send.empty());
}

TEST(CallBoundTest, AnAlgorithmThatNobodyKnowsHereHasNoModel) {
  const auto scenario = sweep("sizes: 10MB", kHalfANode);
  reports::Run run = r2Run(scenario, 8, "optcc");
  run.plans.front().algorithm = "of_another_version";  // as a transcript may say
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_FALSE(row.model || row.time_over_model);
  EXPECT_TRUE(row.bound && row.time_over_bound);
}

TEST(CallBoundTest, OtherAlgorithmsHaveNoFormula) {
  const auto scenario = sweep("sizes: 10MB", kHalfANode);
  reports::Run run = r2Run(scenario, 8, "optcc");
  compareWithModels(scenario, run);
  const reports::CollectiveRow& row = run.collectives.front();
  EXPECT_TRUE(row.model);
  EXPECT_FALSE(row.formula || row.formula_chunks || row.time_over_formula);
}

}  // namespace
}  // namespace faultline::run

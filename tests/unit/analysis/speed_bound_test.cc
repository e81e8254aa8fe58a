#include "harness/analysis/speed_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/workload_kind.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

// The model of sampleRun: buckets are ready at 20 and 30 ms and take 20 ms each, 60 ms in all.
constexpr double kFree = 10 * 60;
constexpr double kOneRailOfTwo = 4.0 / 3;  // 1 / 0.5 against 2 * 3 / 4 of the ring

std::vector<reports::Run> with(reports::Run faulted) {
  return {sampleRun("fault_free", 0), std::move(faulted)};
}

TEST(BoundTest, APortThatIsDownWhileTwoBucketsAreReduced) {
  const auto scenario = sampleScenario(faults(kPortDown));
  // 40 ms at 3/4 of the speed leave 10 ms of work to be done on a healthy network.
  EXPECT_NEAR(*boundPercent(scenario, with(faultedRun("hot_repair", 0)), "hot_repair"),
              100 * 10 / kFree, 1e-9);
}

/// A model of 8 layers on four ranks; what it computes and reduces is the sample scenario's.
model::Training sampleTraining() {
  model::Training training;
  training.model.layers = 8;
  training.model.hidden = 64;
  training.model.ffn = 256;
  training.parallel.data = 4;
  training.buckets = 2;
  return training;
}

TEST(BoundTest, OfAModelBucketsAreReadyInTheLastMicroBatch) {
  auto scenario = sampleScenario(faults(kPortDown));
  scenario.workload.model = sampleTraining();
  const auto runs = with(faultedRun("hot_repair", 0));
  // One micro-batch and next to no head: as without a model.
  EXPECT_NEAR(*boundPercent(scenario, runs, "hot_repair"), 100 * 10 / kFree, 0.01);
  // Of 4: ready at 27.5 and 30 ms, 16.25 ms each; 32.5 ms at 3/4 of the speed leave 8.125 ms.
  scenario.workload.model->microBatches = 4;
  EXPECT_NEAR(*boundPercent(scenario, runs, "hot_repair"), 100 * 8.125 / kFree, 0.01);
}

TEST(BoundTest, ASweepHasOneForEachCellAndSaysSo) {
  auto scenario = sampleScenario(faults(kPortDown));
  scenario.workload.kind = scenario::findWorkloadKind("collective");
  ASSERT_TRUE(scenario.workload.kind->hasCells);
  const auto runs = with(faultedRun("hot_repair", 0));
  EXPECT_THAT(whyNoBound(scenario, runs, "hot_repair"), HasSubstr("each operation and size"));
  EXPECT_EQ(whyNoBound(scenario, runs, "fault_free"), "") << "it met no fault";
}

TEST(BoundTest, OtherPlansOfAModelHaveNoneAndSayWhy) {
  auto scenario = sampleScenario(faults(kPortDown));
  const auto runs = with(faultedRun("hot_repair", 0));
  const auto expectNone = [&](const char* why) {
    EXPECT_EQ(boundPercent(scenario, runs, "hot_repair"), std::nullopt);
    EXPECT_THAT(whyNoBound(scenario, runs, "hot_repair"), HasSubstr(why));
  };
  scenario.workload.model = sampleTraining();
  EXPECT_EQ(whyNoBound(scenario, runs, "hot_repair"), "");
  scenario.workload.model->parallel.zero = 1;
  expectNone("without ZeRO");
  scenario.workload.model = sampleTraining();
  scenario.workload.model->parallel = {.data = 2, .tensor = 2};
  expectNone("plain data parallelism");
  scenario.workload.model = sampleTraining();
  scenario.workload.model->buckets = 3;
  expectNone("3 buckets do not divide 8 layers");
}

TEST(BoundTest, EveryStrikeOfARepeatedFaultCounts) {
  const auto scenario = sampleScenario(
      faults("  - {kind: port_down, target: {node: 1, rail: 0}, at: 170ms, duration: 40ms, "
             "times: 2, every: 300ms}\n"));
  auto run = faultedRun("hot_repair", 0);
  run.faults.push_back(run.faults[0]);
  run.faults[1].start_ms += 300;  // four iterations later
  *run.faults[1].end_ms += 300;
  EXPECT_NEAR(*boundPercent(scenario, with(run), "hot_repair"), 2 * 100 * 10 / kFree, 1e-9);
  run.faults.push_back(run.faults[0]);
  EXPECT_EQ(boundPercent(scenario, with(run), "hot_repair"), std::nullopt) << "not the scenario's";
}

TEST(BoundTest, FaultsThatTakeNoBandwidthCostNothing) {
  const auto bound = [](const std::string& kind, const std::string& target) {
    const auto scenario = sampleScenario(
        faults("  - {kind: " + kind + ", target: {" + target + "}, at: 170ms, duration: 40ms}\n"));
    auto run = faultedRun("hot_repair", 0);
    run.faults[0].kind = kind;
    if (target.find("rail") == std::string::npos) run.faults[0].target.rail = std::nullopt;
    return boundPercent(scenario, with(run), "hot_repair");
  };
  EXPECT_EQ(bound("connection_reset", "node: 1, rail: 0"), 0);
  EXPECT_EQ(bound("blackhole", "node: 1, network: management"), 0);
  EXPECT_EQ(bound("process_stop", "node: 1"), std::nullopt) << "the model does not know it";
}

TEST(BoundTest, StrategiesThatMeetNoFaultLoseNothing) {
  const auto scenario = sampleScenario(faults(kPortDown));
  const auto runs = sampleRuns(scenario);
  EXPECT_EQ(boundPercent(scenario, runs, "armed"), 0);
  EXPECT_EQ(boundPercent(scenario, runs, "fault_free"), std::nullopt);
}

TEST(BoundTest, FailStopHasTheSameBoundAsOthers) {
  const auto scenario = sampleScenario(faults(kPortDown));
  reports::Run hung = faultedRun("fail_stop", 0);
  hung.status = reports::RunStatus::kHung;
  hung.restarts.push_back({});
  hung.iterations.resize(2);  // iteration 2 hung, 1 and 2 were done again later
  for (int i = 1; i < 10; ++i) hung.iterations.push_back({i, 1000 + 75.0 * i, 60});
  EXPECT_NEAR(*boundPercent(scenario, with(hung), "fail_stop"), 100 * 10 / kFree, 1e-9);
  hung.restarts.clear();
  EXPECT_EQ(boundPercent(scenario, with(hung), "fail_stop"), std::nullopt) << "never completed";
}

TEST(BoundTest, AFaultUntilTheEnd) {
  const auto scenario = sampleScenario(
      faults("  - {kind: blackhole, target: {node: 1, rail: 0}, at: 0s, until: end}\n"));
  auto run = faultedRun("hot_repair", 0);
  run.faults[0].kind = "blackhole";
  run.faults[0].start_ms = 0;
  run.faults[0].end_ms = std::nullopt;
  EXPECT_NEAR(*boundPercent(scenario, with(run), "hot_repair"), 100 * 40 * (kOneRailOfTwo - 1) / 60,
              1e-9);
}

TEST(BoundTest, AThrottleTakesItsShareOfTheRail) {
  const auto bound = [](const std::string& parameters) {
    const auto scenario =
        sampleScenario(faults("  - {kind: throttle, " + parameters +
                              ", target: {node: 1, rail: 0}, at: 170ms, duration: 40ms}\n"));
    auto run = faultedRun("hot_repair", 0);
    run.faults[0].kind = "throttle";
    return *boundPercent(scenario, with(run), "hot_repair");
  };
  // A quarter left: 5/8 of the node's bandwidth, where the sum of all bandwidths is the bound.
  const double slowdown = 6 / 3.625 / 1.5;
  const double expected = 100 * (40 - 40 / slowdown) / kFree;
  EXPECT_NEAR(bound("rate: 25%"), expected, 1e-9);
  EXPECT_NEAR(bound("rate: 100Mbit"), expected, 1e-9);
  EXPECT_NEAR(bound("rate: 100Mbit, direction: rx"), expected, 1e-9);
  EXPECT_NEAR(bound("rate: 100Mbit, direction: tx"), expected, 1e-9);
  EXPECT_EQ(bound("rate: 4Gbit"), 0) << "faster than the rail is";
}

TEST(BoundTest, AFlapIsDownForItsDutyOnly) {
  const auto bound = [](const std::string& parameters) {
    const auto scenario =
        sampleScenario(faults("  - {kind: port_flap, period: 20ms, " + parameters +
                              ", target: {node: 1, rail: 0}, at: 170ms, duration: 40ms}\n"));
    auto run = faultedRun("hot_repair", 0);
    run.faults[0].kind = "port_flap";
    return *boundPercent(scenario, with(run), "hot_repair");
  };
  EXPECT_NEAR(bound("duty: 50%"), 100 * 5 / kFree, 1e-9) << "twice 10 ms";
  EXPECT_NEAR(bound("duty: 50%, count: 1"), 100 * 2.5 / kFree, 1e-9);
  EXPECT_NEAR(bound("duty: 80%, count: 1"), 100 * 4 / kFree, 1e-9);
}

TEST(BoundTest, FaultsOfOneRunAdd) {
  const auto scenario = sampleScenario(
      faults(std::string(kPortDown) +
             "  - {kind: port_down, target: {node: 1, rail: 1}, at: 170ms, duration: 40ms}\n"));
  auto run = faultedRun("hot_repair", 0);
  run.faults.push_back(run.faults[0]);
  run.faults[1].target.rail = 1;
  EXPECT_NEAR(*boundPercent(scenario, with(run), "hot_repair"), 100 * 40 / kFree, 1e-9)
      << "no rail is left for 40 ms";
  run.faults[1].end_ms = std::nullopt;
  run.faults[0].end_ms = std::nullopt;
  EXPECT_EQ(boundPercent(scenario, with(run), "hot_repair"), std::nullopt) << "for ever";
}

TEST(BoundTest, EveryAppliedFaultHasItsOwnParameters) {
  const std::string target = "target: {node: 1, rail: 0}";
  const auto scenario = sampleScenario(
      faults("  - {kind: throttle, rate: 100%, " + target + ", at: 20ms, duration: 40ms}\n" +
             "  - {kind: throttle, rate: 25%, " + target + ", at: 170ms, duration: 40ms}\n"));
  auto run = faultedRun("hot_repair", 0);
  run.faults[0].kind = "throttle";
  run.faults.push_back(run.faults[0]);
  run.faults[0].start_ms = 20;
  run.faults[0].end_ms = 60;
  EXPECT_GT(*boundPercent(scenario, with(run), "hot_repair"), 0.1);
}

TEST(BoundTest, TheMedianOfTheRuns) {
  const auto scenario = sampleScenario(faults(kPortDown));
  auto runs = with(faultedRun("hot_repair", 0));
  runs.push_back(sampleRun("fault_free", 1));
  runs.push_back(faultedRun("hot_repair", 1));
  runs.back().faults[0].end_ms = runs.back().faults[0].start_ms;
  EXPECT_NEAR(*boundPercent(scenario, runs, "hot_repair"), 100 * 5 / kFree, 1e-9);
}

TEST(BoundTest, ARunIsMeasuredAgainstTheFaultFreeRunOfItsBlock) {
  const auto scenario = sampleScenario(faults(kPortDown));
  auto runs = with(faultedRun("hot_repair", 0));
  // One slow iteration makes the overhead smaller, and so it must make the bound.
  runs[0].iterations[5].ms += 200;
  runs.push_back(sampleRun("fault_free", 1));
  EXPECT_NEAR(*boundPercent(scenario, runs, "hot_repair"), 100 * 10 / (kFree + 200), 1e-9);
  runs[1].block = 2;
  EXPECT_EQ(boundPercent(scenario, runs, "hot_repair"), std::nullopt);
}

TEST(BoundTest, OnlyTheTimeOnTheWireIsSlowedDown) {
  const auto scenario = sampleScenario(
      faults("  - {kind: blackhole, target: {node: 1, rail: 0}, at: 0s, until: end}\n"));
  auto run = faultedRun("hot_repair", 0);
  run.faults[0] = reports::AppliedFault();
  run.faults[0].kind = "blackhole";
  run.faults[0].target = {1, 0, std::nullopt, ""};
  auto runs = with(run);
  for (auto& iteration : runs[0].iterations) iteration.ms = 200;
  // 3/4 of 4 MiB twice over two rails of 400 Mbit/s, whatever else the 180 ms were spent on.
  const double wire = 1.5 * (4 << 20) / 2 / (400e3 * 0.957 / 8);
  EXPECT_NEAR(*boundPercent(scenario, runs, "hot_repair"), 100 * wire * (kOneRailOfTwo - 1) / 200,
              1e-6);
}

TEST(BoundTest, MessagesThatPassInABurstHaveNone) {
  auto scenario = sampleScenario(faults(kPortDown));
  const auto runs = sampleRuns(scenario);
  EXPECT_EQ(whyNoBound(scenario, runs, "hot_repair"), "");
  scenario.workload.gradient.size = 2 << 20;  // 1.5 MiB per port; 20 bursts of 100 kB are 2 MB
  EXPECT_EQ(boundPercent(scenario, runs, "hot_repair"), std::nullopt);
  EXPECT_THAT(whyNoBound(scenario, runs, "hot_repair"), HasSubstr("only 1573 kB"));
  EXPECT_EQ(boundPercent(scenario, runs, "armed"), 0) << "meets no fault";
}

TEST(BoundTest, MoreThanOnePercentBetterThanPossibleIsMisMeasured) {
  reports::Summary row;
  EXPECT_FALSE(betterThanPossible(row, std::nullopt));
  row.bound_pct = 10;
  EXPECT_FALSE(betterThanPossible(row, std::nullopt));
  row.overhead_pct = reports::Overhead{1.1 * 0.995 * 100 - 100, std::nullopt};
  EXPECT_FALSE(betterThanPossible(row, std::nullopt));
  row.overhead_pct->median = 1.1 * 0.985 * 100 - 100;
  EXPECT_TRUE(betterThanPossible(row, std::nullopt));
}

TEST(BoundTest, NoModelNoBound) {
  auto scenario = sampleScenario(faults(kPortDown));
  const auto runs = with(faultedRun("hot_repair", 0));
  EXPECT_EQ(boundPercent(scenario, std::vector{faultedRun("hot_repair", 0)}, "hot_repair"),
            std::nullopt)
      << "no fault_free";
  auto failed = runs;
  failed[0].status = reports::RunStatus::kFailed;
  EXPECT_EQ(boundPercent(scenario, failed, "hot_repair"), std::nullopt);
  scenario.workload.kind = scenario::findWorkloadKind("command");
  EXPECT_EQ(boundPercent(scenario, runs, "hot_repair"), std::nullopt);
}

}  // namespace
}  // namespace faultline::run

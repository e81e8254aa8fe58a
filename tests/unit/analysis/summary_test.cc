#include "harness/analysis/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/baseline/strategy_table.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

const reports::Summary& row(const std::vector<reports::Summary>& rows, const std::string& name) {
  for (const reports::Summary& candidate : rows) {
    if (candidate.strategy == name) return candidate;
  }
  throw std::runtime_error("no row " + name);
}

std::vector<reports::Run> blocks(int count) {
  std::vector<reports::Run> runs;
  for (int block = 0; block < count; ++block) {
    // The machine gets slower from block to block; hot_repair always takes a quarter longer.
    runs.push_back(faultedRun("hot_repair", block, 80.0 / (block + 1)));
    runs.push_back(sampleRun("fault_free", block, 100.0 / (block + 1)));
  }
  return runs;
}

void addFailovers(reports::Run& run, int count) {
  for (int i = 0; i < count; ++i) run.failovers.emplace_back().pause_ms = i + 1;
}

TEST(SummaryTest, RowsComeInTheScenariosOrder) {
  const auto scenario = sampleScenario();
  std::vector<std::string> names;
  for (const auto& each : summarise(scenario, {}, 7)) names.push_back(each.strategy);
  EXPECT_EQ(names, (std::vector<std::string>{"fault_free", "armed", "fail_stop", "hot_repair"}));
}

TEST(SummaryTest, EachRowSaysWhatItsStrategyIs) {
  auto scenario = sampleScenario();
  scenario.strategies.back().does = scenario.strategies.back().name;
  scenario.strategies.back().name = "again";  // a row with a name of its own
  for (const auto& each : summarise(scenario, {}, 7)) {
    const std::string kind = each.strategy == "again" ? "hot_repair" : each.strategy;
    EXPECT_EQ(each.meaning, baseline::findStrategy(kind)->summary) << each.strategy;
    EXPECT_FALSE(each.meaning.empty());
  }
}

TEST(SummaryTest, OverheadIsPerBlockSoThatDriftCancels) {
  const auto rows = summarise(sampleScenario(), blocks(3), 7);
  EXPECT_NEAR(row(rows, "hot_repair").overhead_pct->median, 25, 1e-9);
  EXPECT_EQ(row(rows, "hot_repair").n, 3);
  EXPECT_EQ(row(rows, "hot_repair").throughput->value, 40);
  EXPECT_EQ(row(rows, "hot_repair").throughput->unit, "iterations/s");
  EXPECT_FALSE(row(rows, "hot_repair").overhead_pct->ci95) << "too few blocks";
  EXPECT_FALSE(row(rows, "fault_free").overhead_pct) << "the reference itself";
  EXPECT_EQ(row(rows, "fault_free").n, 3);
  EXPECT_EQ(row(rows, "fault_free").throughput->value, 50);
  EXPECT_FALSE(row(rows, "armed").overhead_pct) << "was not run";
  EXPECT_EQ(row(rows, "armed").n, 0);
}

TEST(SummaryTest, IntervalsFromSixBlocksOn) {
  auto runs = blocks(6);
  runs[0].throughput->value = 90;
  const auto rows = summarise(sampleScenario(), runs, 7);
  const auto& interval = row(rows, "hot_repair").overhead_pct->ci95;
  ASSERT_TRUE(interval);
  EXPECT_LE(interval->lo, 25);
  EXPECT_NEAR(interval->hi, 25, 1e-9);
}

TEST(SummaryTest, OnlyCompletedRunsHaveASpeed) {
  auto runs = blocks(3);
  runs[0].status = reports::RunStatus::kFailed;
  runs[0].throughput->value = 1;
  runs[3].status = reports::RunStatus::kInvalid;  // fault_free of block 1
  auto rows = summarise(sampleScenario(), runs, 7);
  EXPECT_EQ(row(rows, "hot_repair").n, 1) << "a block needs both of its runs";
  EXPECT_NEAR(row(rows, "hot_repair").overhead_pct->median, 25, 1e-9);
  runs[0].status = reports::RunStatus::kHung;
  runs[0].restarts.push_back({});  // as fail-stop does it
  rows = summarise(sampleScenario(), runs, 7);
  EXPECT_EQ(row(rows, "hot_repair").n, 2);
}

TEST(SummaryTest, WithoutTheReferenceThereIsNoOverhead) {
  const auto rows = summarise(sampleScenario(), std::vector{faultedRun("hot_repair", 0, 80)}, 7);
  EXPECT_FALSE(row(rows, "hot_repair").overhead_pct);
  EXPECT_EQ(row(rows, "hot_repair").n, 1);
  EXPECT_EQ(row(rows, "hot_repair").throughput->value, 80);
}

TEST(SummaryTest, PausesOfAllFaultedRunsWithTailsOnlyFromEnoughSamples) {
  auto runs = blocks(2);
  EXPECT_FALSE(row(summarise(sampleScenario(), runs, 7), "hot_repair").failover_pause_ms);
  addFailovers(runs[0], 30);
  addFailovers(runs[2], 29);
  auto pauses = *row(summarise(sampleScenario(), runs, 7), "hot_repair").failover_pause_ms;
  EXPECT_EQ(pauses.n, 59);
  EXPECT_EQ(pauses.p50, 15);
  EXPECT_EQ(pauses.max, 30);
  EXPECT_FALSE(pauses.p95);
  addFailovers(runs[2], 1);
  EXPECT_TRUE(row(summarise(sampleScenario(), runs, 7), "hot_repair").failover_pause_ms->p95);
  addFailovers(runs[2], 239);
  EXPECT_FALSE(row(summarise(sampleScenario(), runs, 7), "hot_repair").failover_pause_ms->p99);
  addFailovers(runs[2], 1);
  EXPECT_TRUE(row(summarise(sampleScenario(), runs, 7), "hot_repair").failover_pause_ms->p99);
  runs[2].faulted = false;
  pauses = *row(summarise(sampleScenario(), runs, 7), "hot_repair").failover_pause_ms;
  EXPECT_EQ(pauses.n, 30);
}

TEST(SummaryTest, FailoversWhoseFaultHasNoMomentAreTold) {
  auto runs = blocks(1);
  addFailovers(runs[0], 20);
  for (int i : {18, 19}) runs[0].failovers[i].fault_within_ms = 100;
  const auto hotRepair = row(summarise(sampleScenario(), runs, 7), "hot_repair");
  EXPECT_EQ(hotRepair.failover_pause_ms->n, 20);
  EXPECT_NE(hotRepair.note.find("than 5 ms: 2 failovers"), std::string::npos) << hotRepair.note;
}

TEST(SummaryTest, TheBoundStandsNextToTheOverhead) {
  const auto scenario = sampleScenario(
      faults("  - {kind: port_down, target: {node: 1, rail: 0}, at: 170ms, duration: 40ms}\n"));
  const auto rows = summarise(scenario, blocks(2), 7);
  EXPECT_NEAR(*row(rows, "hot_repair").bound_pct, 100 * 10 / 600.0, 1e-9);
  EXPECT_FALSE(row(rows, "fault_free").bound_pct);
}

TEST(SummaryTest, ARowThatIsBetterThanPossibleSaysSo) {
  const auto scenario = sampleScenario(faults(kPortDown));
  auto runs = sampleRuns(scenario);
  for (reports::Run& run : runs) {
    if (run.strategy == "hot_repair") run.throughput->value = 10.5;
    if (run.strategy == "fail_stop") run.throughput->value = 5;
  }
  const auto rows = summarise(scenario, runs, 7);
  EXPECT_TRUE(row(rows, "hot_repair").mis_measured);
  EXPECT_NE(row(rows, "hot_repair").note, "");
  EXPECT_FALSE(row(rows, "fail_stop").mis_measured);
  EXPECT_EQ(row(rows, "fail_stop").note, "");
}

TEST(SummaryTest, ARowThatIsBetterByLessThanMeasurementsVarySaysWhy) {
  const auto scenario = sampleScenario(faults(kPortDown));
  auto runs = sampleRuns(scenario);
  for (reports::Run& run : runs) {
    if (run.strategy == "hot_repair") run.throughput->value = 10 / 1.0152;  // best: 1.67 %
  }
  const auto hot = row(summarise(scenario, runs, 7), "hot_repair");
  EXPECT_FALSE(hot.mis_measured);
  EXPECT_NE(hot.note.find("1.5 % is below the best possible 1.7 %"), std::string::npos) << hot.note;
}

/// Those of the sample, of which each of fail_stop's restarted once: 1 s, of which 500 ms are its
/// watchdog's; with the usual one 600.3 s.
std::vector<reports::Run> restartedRuns(const scenario::Scenario& scenario) {
  auto runs = sampleRuns(scenario);
  for (reports::Run& run : runs) {
    if (run.strategy != "fail_stop") continue;
    run.status = reports::RunStatus::kHung;
    run.throughput->value = 5;  // 2 s for ten iterations, 1 s of it for the restart
    reports::Restart& restart = run.restarts.emplace_back();
    restart.hang_ms = 500;
    restart.isolate_ms = restart.load_ms = 200;
    restart.lost_ms = 100;
    restart.unscaled_total_ms = 600'300;
  }
  return runs;
}

void setSpeed(std::vector<reports::Run>& runs, const std::string& strategy, double speed) {
  for (reports::Run& run : runs) {
    if (run.strategy == strategy) run.throughput->value = speed;
  }
}

TEST(SummaryTest, FailStopNamesTheWatchdogThatItsOverheadIsDueTo) {
  const auto scenario = sampleScenario(faults(kPortDown));
  const auto runs = restartedRuns(scenario);
  // 1 s of work in 1 + 600.3 s.
  const auto note = row(summarise(scenario, runs, 7), "fail_stop").note;
  EXPECT_NE(note.find("its watchdog is 30ms; with the usual one of 10min its overhead would be "
                      "60030 %"),
            std::string::npos)
      << note;
}

TEST(SummaryTest, SlowAndShortRunsHaveAnOverheadWithTheUsualWatchdogToo) {
  const auto scenario = sampleScenario(faults(kPortDown));
  auto runs = restartedRuns(scenario);
  setSpeed(runs, "fault_free", 0.8);
  setSpeed(runs, "fail_stop", 0.5);
  // 12.5 s of work in 20 + 599.3 s.
  EXPECT_THAT(row(summarise(scenario, runs, 7), "fail_stop").note, HasSubstr("would be 4854 %"));
  runs = restartedRuns(scenario);
  for (reports::Run& run : runs) {
    if (run.strategy == "fail_stop") run.iterations.resize(1);
  }
  // 0.1 s of work in 0.2 + 599.3 s.
  EXPECT_THAT(row(summarise(scenario, runs, 7), "fail_stop").note, HasSubstr("would be 599400 %"));
}

TEST(SummaryTest, WithoutASpeedNobodyKnowsWhatTheUsualWatchdogWouldCost) {
  const auto scenario = sampleScenario(faults(kPortDown));
  for (const char* strategy : {"fault_free", "fail_stop"}) {
    auto runs = restartedRuns(scenario);
    setSpeed(runs, strategy, 0);
    EXPECT_EQ(row(summarise(scenario, runs, 7), "fail_stop").note,
              "its watchdog is 30ms; jobs have 10min")
        << strategy;
  }
}

}  // namespace
}  // namespace faultline::run

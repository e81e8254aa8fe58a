#include "harness/analysis/after_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/analysis/expectations.h"
#include "harness/analysis/strikes.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using reports::AfterFault;

/// Appends iterations of `ms` back to back until `until`.
void iterate(reports::Run& run, double ms, double until) {
  double begin =
      run.iterations.empty() ? 0 : run.iterations.back().start_ms + run.iterations.back().ms;
  int index = run.iterations.empty() ? 0 : run.iterations.back().index + 1;
  for (; begin + ms <= until + 1e-6; begin += ms) run.iterations.push_back({index++, begin, ms});
  run.duration_ms = begin;
}

/// Iterations of `ms` each for 10 s.
reports::Run freeRun(double ms = 100) {
  reports::Run run;
  run.strategy = "fault_free";
  iterate(run, ms, 10'000);
  return run;
}

/// Iterations of 100 ms for 2 s, then a fault until `end_ms`; nothing after its begin.
reports::Run struck(double end_ms = 3000) {
  reports::Run run;
  run.strategy = "hot_repair";
  run.arm = reports::Arm::kFaulted;
  run.faulted = true;
  iterate(run, 100, 2000);
  reports::AppliedFault& fault = run.faults.emplace_back();
  fault.kind = "port_down";
  fault.start_ms = 2000;
  fault.end_ms = end_ms;
  fault.asked.ms = end_ms - 2000;
  run.evidence.push_back({0, "peer_carrier", "seen", true});
  return run;
}

std::optional<AfterFault> after(const reports::Run& run, const reports::Run& free = freeRun()) {
  return afterFault(sampleScenario(), run, free);
}

TEST(AfterFaultTest, AJobThatGoesOnAtItsSpeedIsBackAtOnce) {
  reports::Run run = struck();
  iterate(run, 100, 8000);
  const auto found = after(run);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->counted, "iterations");
  EXPECT_NEAR(found->after_pct, 100, 1e-6);
  EXPECT_NEAR(*found->back_ms, 0, 1e-6);
  EXPECT_DOUBLE_EQ(found->reverted_ms, 3000);
  EXPECT_NEAR(found->watched_ms, 5000, 1e-6);
}

TEST(AfterFaultTest, AHoldOffIsInTheTimeUntilItIsBack) {
  reports::Run run = struck();
  iterate(run, 200, 4000);  // at half of its speed for a second after the fault
  iterate(run, 100, 8000);
  const auto found = after(run);
  EXPECT_NEAR(found->after_pct, 50, 1e-6);
  EXPECT_NEAR(*found->back_ms, 900, 1e-3) << "from 3900 on, 9.5 iterations are done in a second";
}

TEST(AfterFaultTest, AJobThatStaysSlowIsNeverBack) {
  reports::Run run = struck();
  iterate(run, 110, 8000);
  const auto found = after(run);
  EXPECT_NEAR(found->after_pct, 100 / 1.1, 1e-6);
  EXPECT_FALSE(found->back_ms);
  EXPECT_GT(found->watched_ms, 4800);
}

TEST(AfterFaultTest, WhatIsAsFastAsFaultFreeWithinFivePercentIsBack) {
  reports::Run run = struck();
  iterate(run, 105, 8000);
  EXPECT_TRUE(after(run)->back_ms);
}

TEST(AfterFaultTest, WithoutAWholeSecondNobodyKnows) {
  reports::Run run = struck();
  iterate(run, 100, 3900);
  EXPECT_FALSE(after(run)) << "900 ms are left";
  iterate(run, 100, 4000);
  EXPECT_TRUE(after(run)) << "exactly a second is";
  EXPECT_FALSE(after(struck(2500))) << "nothing was done after it at all";
}

TEST(AfterFaultTest, AFaultUntilTheEndHasNoTimeAfterIt) {
  reports::Run run = struck(8001);
  run.faults[0].asked.ms.reset();
  iterate(run, 150, 8000);
  EXPECT_FALSE(after(run));
  run.faults[0].end_ms.reset();
  EXPECT_FALSE(after(run));
  run.status = reports::RunStatus::kFailed;
  run.faults[0].end_ms = 8001;
  EXPECT_FALSE(after(run));
}

TEST(AfterFaultTest, TheLastOfSeveralFaultsCounts) {
  reports::Run run = struck();
  run.faults.push_back(run.faults[0]);
  run.faults[0].end_ms = 6000;  // begun first, ended last
  iterate(run, 200, 6000);
  iterate(run, 100, 8000);
  EXPECT_DOUBLE_EQ(after(run)->reverted_ms, 6000);
  EXPECT_NEAR(after(run)->after_pct, 100, 1e-6);
}

TEST(AfterFaultTest, ARunThatFailedDidNothingAfterwards) {
  for (const auto status : {reports::RunStatus::kFailed, reports::RunStatus::kHung}) {
    reports::Run run = struck();
    run.status = status;
    const auto found = after(run);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->after_pct, 0);
    EXPECT_FALSE(found->back_ms);
  }
  reports::Run run = struck();
  run.status = reports::RunStatus::kInvalid;
  iterate(run, 100, 8000);
  EXPECT_FALSE(after(run)) << "it proves nothing";
}

TEST(AfterFaultTest, WithoutAFaultOrAReferenceThereIsNothing) {
  reports::Run run = struck();
  iterate(run, 100, 8000);
  EXPECT_FALSE(after(run, reports::Run()));
  run.faulted = false;
  EXPECT_FALSE(after(run));
}

TEST(AfterFaultTest, WorkThatIsDoneAgainCountsOnce) {
  reports::Run run = struck();
  // Restarted at 3200 from a checkpoint after iteration 9: 10 to 19 are done again, then 20.
  run.status = reports::RunStatus::kHung;
  run.restarts.emplace_back();
  for (int i = 0; i < 50; ++i) run.iterations.push_back({10 + i, 3200 + 100.0 * i, 100});
  const auto found = after(run);
  EXPECT_NEAR(found->after_pct, 0, 1e-6);
  // Iteration 20 begins at 4200: a window from 4150 on has 9.5 new ones.
  EXPECT_NEAR(*found->back_ms, 1150, 1e-3);
}

TEST(AfterFaultTest, FewerRanksDoLess) {
  reports::Run run = struck();
  reports::Shrink& shrink = run.shrinks.emplace_back();
  shrink.resumed_ms = 2500;
  shrink.ranks = 3;  // of 4
  iterate(run, 500, 2500);
  iterate(run, 100, 8000);
  EXPECT_NEAR(after(run)->after_pct, 75, 1e-6);
  EXPECT_FALSE(after(run)->back_ms);
}

TEST(AfterFaultTest, IterationsThatAreLongerThanAWindowCountByTheirShare) {
  const reports::Run free = freeRun(2500);
  reports::Run run = struck(5000);
  run.iterations.clear();
  iterate(run, 2500, 2500);
  run.iterations.push_back({1, 2500, 5000});  // struck, half as fast, until 7500
  iterate(run, 2500, 15'000);
  const auto found = after(run, free);
  EXPECT_NEAR(found->after_pct, 50, 1e-6) << "of an iteration all of which was that fast";
  EXPECT_NEAR(*found->back_ms, 2500 - 100, 1e-3) << "100 ms at half, 900 at full speed";
}

TEST(AfterFaultTest, PausesBetweenIterationsAreInBoth) {
  reports::Run free;
  reports::Run run = struck();
  run.iterations.clear();
  for (int i = 0; i < 50; ++i) free.iterations.push_back({i, 200.0 * i, 120});
  for (int i = 0; i < 50; ++i) run.iterations.push_back({i, 200.0 * i + 7, 120});
  EXPECT_NEAR(after(run, free)->after_pct, 100, 1e-6);
  // A job that stands between two iterations does nothing.
  for (int i = 15; i < 50; ++i) run.iterations[static_cast<std::size_t>(i)].start_ms += 900;
  EXPECT_LT(after(run, free)->after_pct, 60);
}

TEST(AfterFaultTest, ProgramsThatTellOfEveryHundredthIterationAreComparedWithThemselves) {
  reports::Run free = freeRun();
  reports::Run run = struck();
  iterate(run, 100, 8000);
  for (reports::Iteration& one : run.iterations) one.index *= 100;
  for (reports::Iteration& one : free.iterations) one.index *= 100;
  EXPECT_NEAR(after(run, free)->after_pct, 100, 1e-6);
  // One mark that was not seen is no iteration less.
  run.iterations.erase(run.iterations.begin() + 30);
  run.iterations[29].ms += 100;
  EXPECT_NEAR(after(run, free)->after_pct, 100, 1e-6);
}

scenario::Scenario scenarioOf(const std::string& workload,
                              const std::string& strategy = "hot_repair") {
  scenario::ReadResult read = scenario::readScenario(
      "version: 1\nname: sample\n"
      "cluster: {kind: netns, nodes: 4, rails: 2, rail_rate: 400Mbit}\n"
      "workload: " +
          workload + "\nstrategies: [fault_free, " + strategy + "]\nfaults:\n" + kPortDown,
      "sample");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

TEST(AfterFaultTest, ACallOfASweepIsWorthWhatFaultFreeTookForIt) {
  const scenario::Scenario sweep =
      scenarioOf("{kind: collective, iterations: 10, collective: {sizes: [64KiB, 4MiB]}}");
  // Calls of 10 and 190 ms in turn. After the fault only short ones were left, at their speed.
  reports::Run free;
  double begin = 0;
  for (int i = 0; i < 60; ++i) {
    const double ms = i < 20 ? (i % 2 == 0 ? 10 : 190) : 10;
    free.iterations.push_back({i, begin, ms});
    begin += ms;
  }
  reports::Run run = struck();
  run.iterations.clear();
  begin = 0;
  for (int i = 0; i < 60; ++i) {
    const double ms = i < 20 ? (i % 2 == 0 ? 10 : 290) : 40;
    run.iterations.push_back({i, begin, ms});
    begin += ms;
  }
  const auto found = afterFault(sweep, run, free);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->counted, "calls");
  EXPECT_NEAR(found->after_pct, 25, 1e-6) << "100 times as many calls as before, each at a quarter";
}

/// Requests of 150 ms that come every 50, from 0 on.
void serve(reports::Run& run, int rate, int count, double every, double ms, double from) {
  for (int i = 0; i < count; ++i) {
    reports::ServedRequest& request = run.requests.emplace_back();
    request.id = static_cast<int>(run.requests.size());
    request.rate = rate;
    request.arrival_ms = from + i * every;
    request.e2e_ms = ms;
  }
}

TEST(AfterFaultTest, RequestsAreComparedWithThoseOfTheSameRate) {
  const scenario::Scenario server = scenarioOf(
      "{kind: inference,"
      " model: {family: llama, layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336,"
      " vocabulary: 128256, sequence: 8192},"
      " device: {gflops: 1978, efficiency: 40%, memory: 80GB, memory_bandwidth: 6700MB},"
      " parallel: {tensor: 4}, scale: 10,"
      " inference: {qps: [20, 40], requests: 100, prompt: {mean: 100}, output: {mean: 11}}}");
  reports::Run free;
  reports::Run run = struck(6000);
  for (reports::Run* const each : {&free, &run}) {
    serve(*each, 0, 100, 50, 150, 0);
    serve(*each, 1, 160, 25, 150, 5000);
  }
  const auto found = afterFault(server, run, free);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->counted, "requests");
  EXPECT_NEAR(found->after_pct, 100, 1) << "of 40 a second, not of 20";
  // At the end there is less and less to do: that says nothing of the server.
  run.faults[0].end_ms = 8500;
  EXPECT_FALSE(afterFault(server, run, free));
}

void send(reports::Run& run, double from, double until, std::int64_t bytes) {
  if (run.rail_series.empty()) run.rail_series.push_back({0, 0, 0, 20, {}});
  std::vector<std::int64_t>& bins = run.rail_series[0].tx_bytes;
  bins.resize(static_cast<std::size_t>(until / 20));
  for (auto bin = static_cast<std::size_t>(from / 20); bin < bins.size(); ++bin) bins[bin] = bytes;
}

TEST(AfterFaultTest, ProgramsWithoutMarksAreKnownByWhatTheirRailsSend) {
  const scenario::Scenario program =
      scenarioOf("{kind: command, command: {run: [\"true\"]}}", "unprotected");
  reports::Run free;
  send(free, 2000, 8000, 1000);  // it takes 2 s to start
  reports::Run run = struck(4000);
  run.iterations.clear();
  send(run, 2000, 3000, 1000);
  send(run, 4400, 9000, 1000);
  run.duration_ms = 9000;
  const auto found = afterFault(program, run, free);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->counted, "rail_bytes");
  EXPECT_NEAR(found->after_pct, 60, 1e-6);
  EXPECT_NEAR(*found->back_ms, 350, 1e-3);
  free.rail_series.clear();
  EXPECT_FALSE(afterFault(program, run, free));
}

/// hot_repair comes back in the first two of these blocks, and not in the others.
reports::ScenarioResult blocks(int back, int never) {
  reports::ScenarioResult result;
  for (int block = 0; block < back + never; ++block) {
    reports::Run run = struck();
    iterate(run, block < back ? 100 : 150, 8000);
    run.block = block;
    reports::Run free = freeRun();
    free.block = block;
    free.throughput = run.throughput = {10, "iterations/s"};
    result.runs.push_back(std::move(run));
    result.runs.push_back(std::move(free));
  }
  const scenario::Scenario scenario = sampleScenario();
  measureAfterFaults(scenario, result.runs);
  result.summary = summarise(scenario, result.runs, 7);
  return result;
}

const reports::Summary& hotRepair(const reports::ScenarioResult& result) {
  return *std::ranges::find(result.summary, "hot_repair", &reports::Summary::strategy);
}

TEST(AfterFaultTest, TheRowHasMedianAndWorst) {
  const auto result = blocks(3, 0);
  EXPECT_EQ(hotRepair(result).after_pct->n, 3);
  EXPECT_NEAR(hotRepair(result).after_pct->median, 100, 1e-6);
  EXPECT_NEAR(*hotRepair(result).back_to_95_pct_ms->max, 0, 1e-6);
  EXPECT_EQ(hotRepair(result).back_to_95_pct_ms->never, 0);
  EXPECT_FALSE(
      std::ranges::find(result.summary, "fault_free", &reports::Summary::strategy)->after_pct);
}

TEST(AfterFaultTest, ARunThatNeverCameBackIsTheLongest) {
  const auto once = blocks(2, 1);
  EXPECT_TRUE(hotRepair(once).back_to_95_pct_ms->median);
  EXPECT_FALSE(hotRepair(once).back_to_95_pct_ms->max);
  EXPECT_EQ(hotRepair(once).back_to_95_pct_ms->never, 1);
  EXPECT_NEAR(hotRepair(once).after_pct->min, 100 / 1.5, 1e-6);
  EXPECT_FALSE(hotRepair(blocks(1, 1)).back_to_95_pct_ms->median) << "half of them";
}

std::vector<reports::Expectation> judgedLines(const reports::ScenarioResult& result,
                                              const std::string& lines) {
  const auto scenario = sampleScenario(faults(kPortDown) + "expect:\n" + lines);
  return evaluateExpectations(scenario, result);
}

constexpr const char* kGates =
    "  - hot_repair.back_to_95_pct_ms.max <= 2000\n"
    "  - hot_repair.back_to_95_pct_ms.max <= 3600s\n"
    "  - hot_repair.back_to_95_pct_ms.median <= 2000\n"
    "  - hot_repair.after_pct.min >= 95\n"
    "  - hot_repair.after_pct.median >= 95\n";

TEST(AfterFaultTest, OfARunThatWasNotBackNothingIsClaimedBeyondWhatWasWatched) {
  const auto result = blocks(2, 1);
  EXPECT_NEAR(*hotRepair(result).back_to_95_pct_ms->watched_ms, 5000, 1e-6);
  const auto lines = judgedLines(result, kGates);
  EXPECT_FALSE(lines[0].pass);
  EXPECT_FALSE(lines[0].is_void) << "it is known, and bad";
  EXPECT_EQ(lines[0].value, "at least 5000");
  EXPECT_FALSE(lines[1].pass);
  EXPECT_TRUE(lines[1].is_void) << "nobody watched for an hour";
  EXPECT_TRUE(lines[2].pass);
  EXPECT_FALSE(lines[3].pass);
  EXPECT_TRUE(lines[4].pass);
  const auto half = judgedLines(blocks(0, 3), kGates);
  EXPECT_FALSE(half[2].pass || half[2].is_void);
}

TEST(AfterFaultTest, AJobThatEndedForGoodFailsEveryGate) {
  auto result = blocks(1, 0);
  reports::Run died = struck();
  died.block = 1;
  died.status = reports::RunStatus::kFailed;
  died.duration_ms = 3540;
  reports::Run free = freeRun();
  free.block = 1;
  free.throughput = {10, "iterations/s"};
  result.runs.insert(result.runs.end(), {died, free});
  measureAfterFaults(sampleScenario(), result.runs);
  EXPECT_NEAR(result.runs[2].after_fault->watched_ms, 540, 1e-6);
  result.summary = summarise(sampleScenario(), result.runs, 7);
  const auto& back = *hotRepair(result).back_to_95_pct_ms;
  EXPECT_EQ(back.ended, 1);
  EXPECT_FALSE(back.max_at_least);
  EXPECT_FALSE(back.watched_ms);
  const auto lines = judgedLines(result, kGates);
  for (const auto& line : lines) EXPECT_FALSE(line.pass || line.is_void) << line.text;
  EXPECT_EQ(lines[1].value, "never");
  // Where nothing is known of it, nothing follows from the runs that went well.
  result.runs[2].after_fault.reset();
  for (const auto& line : judgedLines(result, kGates)) EXPECT_TRUE(line.is_void) << line.text;
}

TEST(AfterFaultTest, AVoidBlockHasNone) {
  auto result = blocks(2, 0);
  for (reports::Run& run : result.runs) {
    run.after_fault.reset();
    run.after_pct.reset();
    if (run.block == 0) run.void_because = "other faults";
  }
  measureAfterFaults(sampleScenario(), result.runs);
  EXPECT_FALSE(result.runs[0].after_pct);
  EXPECT_TRUE(result.runs[2].after_pct);
}

}  // namespace
}  // namespace faultline::run

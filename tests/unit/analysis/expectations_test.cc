#include "harness/analysis/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/metric_scope.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

TEST(ExpectationsTest, WhereNothingWasComparedNothingIsRight) {
  auto run = faultedRun("hot_repair", 0);
  run.checked_elements = 0;
  const auto scenario = sampleScenario("expect: [wrong_elements == 0]\n");
  const auto judged = evaluateExpectations(scenario, summarised({run}));
  EXPECT_FALSE(judged.at(0).pass);
  EXPECT_THAT(judged.at(0).message, HasSubstr("No run of the experiment has this value"));
}

TEST(EvidenceTest, EveryFaultNeedsItsOwn) {
  auto run = faultedRun("hot_repair", 0);
  EXPECT_TRUE(evidenceIsComplete(run));
  run.evidence.push_back({0, "peer_counters", "nothing", false});
  EXPECT_FALSE(evidenceIsComplete(run)) << "one observation speaks against it";
  run.evidence.pop_back();
  run.faults[0].hit = reports::FaultHit{false, 2, 100, "the iteration was over"};
  EXPECT_FALSE(evidenceIsComplete(run));
  run.faults[0].hit->ok = true;
  EXPECT_TRUE(evidenceIsComplete(run));
  run.faults.push_back(run.faults[0]);
  EXPECT_FALSE(evidenceIsComplete(run)) << "nobody saw the second fault";
  run.faults.clear();
  run.evidence.clear();
  EXPECT_FALSE(evidenceIsComplete(run)) << "never triggered";
  run.faulted = false;
  EXPECT_TRUE(evidenceIsComplete(run)) << "none was due";
}

TEST(ExpectationsTest, ValuesAreNumbersNamesOrFlags) {
  const auto scenario = sampleScenario(
      "expect: [wrong_elements == 0, hot_repair.status == ok, evidence.ok == false, "
      "duration < 4s, hot_repair.iteration_ms.max <= 59.5, hot_repair.throughput.median > 7.2]\n");
  const auto result = summarised({sampleRun("fault_free", 0), faultedRun("hot_repair", 0, 7.25)});
  const auto judged = evaluateExpectations(scenario, result);
  ASSERT_EQ(judged.size(), 6u);
  EXPECT_EQ(judged[0].text, "wrong_elements == 0");
  EXPECT_TRUE(judged[0].pass);
  EXPECT_EQ(judged[0].value.dump(), "0");
  EXPECT_TRUE(judged[1].pass);
  EXPECT_EQ(judged[1].value.dump(), "\"ok\"");
  EXPECT_FALSE(judged[2].pass);
  EXPECT_EQ(judged[2].value.dump(), "true");
  EXPECT_FALSE(judged[3].pass);
  EXPECT_EQ(judged[3].value.dump(), "5000");
  EXPECT_FALSE(judged[4].pass);
  EXPECT_TRUE(judged[5].pass);
  EXPECT_EQ(judged[5].value.dump(), "7.25");
}

TEST(ExpectationsTest, WhatDoesNotExistIsVoidAndSaysWhy) {
  const auto scenario = sampleScenario(
      faults(kPortDown) +
      "expect: [hot_repair.failover_pause_ms.max <= 100, hot_repair.failovers.cause == path, "
      "armed.status == ok]\n");
  const auto judged = evaluateExpectations(scenario, summarised({faultedRun("hot_repair", 0)}));
  for (const auto& line : judged) {
    EXPECT_FALSE(line.pass) << line.text;
    EXPECT_TRUE(line.is_void) << line.text;
    EXPECT_TRUE(line.value.is_null()) << line.text;
  }
  EXPECT_THAT(judged[0].message, HasSubstr("hot_repair: nothing failed over in its runs."));
  EXPECT_THAT(judged[1].message,
              HasSubstr("Nothing of the kind happened in the runs of hot_repair"));
  EXPECT_THAT(judged[2].message, HasSubstr("No run of armed"));
}

/// One of two runs failed in its last iteration, after 2 s in it.
reports::ScenarioResult halfFailed() {
  auto good = faultedRun("hot_repair", 0);
  auto bad = faultedRun("hot_repair", 1);
  bad.status = reports::RunStatus::kFailed;
  bad.throughput.reset();
  bad.iterations.pop_back();
  bad.unfinished = reports::Iteration{.index = 9, .start_ms = 600, .ms = 2000};
  return summarised({sampleRun("fault_free", 0), sampleRun("fault_free", 1), good, bad});
}

TEST(ExpectationsTest, WhatARunThatFailedDidNotFinishIsNeverFlattering) {
  const auto outcome = [](const std::string& text) -> std::string {
    const auto scenario = sampleScenario(faults(kPortDown) + "expect: [" + text + "]\n");
    const auto line = evaluateExpectations(scenario, halfFailed()).at(0);
    return line.is_void ? "void" : line.pass ? "holds" : "fails";
  };
  EXPECT_EQ(outcome("hot_repair.iteration_ms.max <= 300"), "fails");
  EXPECT_EQ(outcome("hot_repair.iteration_ms.max >= 1s"), "holds");
  EXPECT_EQ(outcome("hot_repair.iteration_ms.max <= 5s"), "void") << "nobody knows";
  EXPECT_EQ(outcome("hot_repair.iteration_ms.max < fault_free.iteration_ms.max"), "fails");
  EXPECT_EQ(outcome("fault_free.iteration_ms.max < hot_repair.iteration_ms.max"), "holds");
  EXPECT_EQ(outcome("hot_repair.iteration_ms.p50 <= 300"), "holds") << "the middle one had ended";
  EXPECT_EQ(outcome("hot_repair.throughput.median > 0.1"), "void") << "of the run that went well";
  EXPECT_EQ(outcome("hot_repair.overhead_pct.median <= 1000"), "void");
  EXPECT_EQ(outcome("hot_repair.failovers.count <= 100"), "void") << "ranks were killed";
  EXPECT_EQ(outcome("hot_repair.failbacks.count >= 1"), "fails") << "of the run that went well";
  EXPECT_EQ(outcome("hot_repair.iterations.count >= 10"), "fails");
  EXPECT_EQ(outcome("hot_repair.status == ok"), "fails");
}

TEST(ExpectationsTest, IterationsThatWereNeverBegunCountAsTheOneThatNeverEnded) {
  auto hung = faultedRun("hot_repair", 0);
  hung.status = reports::RunStatus::kHung;
  hung.throughput.reset();
  hung.iterations.resize(3);
  hung.unfinished = reports::Iteration{.index = 3, .start_ms = 225, .ms = 3300};
  const auto lineOf = [&](const std::string& text, const reports::ScenarioResult& result) {
    const auto scenario = sampleScenario(faults(kPortDown) + "expect: [" + text + "]\n");
    return evaluateExpectations(scenario, result).at(0);
  };
  const auto beside = summarised({sampleRun("fault_free", 0), hung});
  const auto line = lineOf("hot_repair.iteration_ms.p50 <= 300", beside);
  EXPECT_FALSE(line.pass || line.is_void) << line.message;
  EXPECT_EQ(line.value, "at least 3300");
  EXPECT_TRUE(lineOf("hot_repair.iteration_ms.p50 <= 5s", beside).is_void);
  EXPECT_FALSE(lineOf("fault_free.iteration_ms.p50 < hot_repair.iteration_ms.p50", beside).is_void);
  // Without a run that did its work, only the scenario says how many there were to be.
  auto alone = summarised({hung});
  const auto unknown = lineOf("hot_repair.iteration_ms.p50 <= 300", alone);
  EXPECT_TRUE(unknown.is_void);
  EXPECT_THAT(unknown.message, HasSubstr("ended before it had done its work"));
  alone.scenario = {{"workload", {{"kind", "training"}, {"iterations", 10}}}};
  EXPECT_FALSE(lineOf("hot_repair.iteration_ms.p50 <= 300", alone).is_void);
  alone.scenario["workload"]["time"] = "5s";
  EXPECT_TRUE(lineOf("hot_repair.iteration_ms.p50 <= 300", alone).is_void);
}

TEST(ExpectationsTest, AVoidLineSaysWhatIsMissing) {
  auto run = faultedRun("hot_repair", 0);
  run.faults[0].asked.ms = 40;
  const auto result = summarised({sampleRun("fault_free", 0), run});
  const auto messageOf = [&](const std::string& text) {
    const auto scenario = sampleScenario(faults(kPortDown) + "expect: [" + text + "]\n");
    return evaluateExpectations(scenario, result).at(0).message;
  };
  EXPECT_THAT(messageOf("hot_repair.after_pct.median >= 80"),
              HasSubstr("hot_repair, block 1: the work ended 525 ms after its last fault was taken "
                        "back; a second after it is needed: raise 'iterations'"));
  EXPECT_THAT(messageOf("hot_repair.failover_pause_ms.max <= 10"),
              HasSubstr("hot_repair: nothing failed over in its runs"));
}

TEST(ExpectationsTest, WithoutASpeedAVoidLineSaysWhetherProgramsOrTheRunEndedTooSoon) {
  const auto messageOf = [](bool programs, bool counts) {
    auto run = faultedRun("hot_repair", 0);
    run.throughput.reset();
    if (programs) run.processes.emplace_back();
    if (!counts) run.void_because = "a fault was not seen";
    const auto result = summarised({sampleRun("fault_free", 0), run});
    const auto scenario =
        sampleScenario(faults(kPortDown) + "expect: [hot_repair.throughput.median > 1]\n");
    return evaluateExpectations(scenario, result).at(0).message;
  };
  const auto programs = HasSubstr("one of its programs had ended before another began");
  const auto work = HasSubstr("none of 1 runs did its work");
  EXPECT_THAT(messageOf(true, true), programs);
  EXPECT_THAT(messageOf(true, false), work);
  EXPECT_THAT(messageOf(false, true), work);
}

TEST(ExpectationsTest, TextsMayContainWords) {
  auto result = halfFailed();
  result.runs.back().message = "rank 2 gave up: all rails down";
  result.runs.back().errors.push_back({.rank = 2, .at_ms = 5, .message = "all rails down"});
  const auto holds = [&](const std::string& text) {
    const auto scenario = sampleScenario(faults(kPortDown) + "expect: ['" + text + "']\n");
    return evaluateExpectations(scenario, result).at(0).pass;
  };
  EXPECT_TRUE(holds("hot_repair.errors.message contains \"all rails\""));
  EXPECT_TRUE(holds("hot_repair.errors.message contains rails down"));
  EXPECT_FALSE(holds("hot_repair.errors.message contains Rails"));
  EXPECT_FALSE(holds("hot_repair.message contains rank 2")) << "not of the run that went well";
}

TEST(ExpectationsTest, OfAFaultThatNobodySawTheyAreVoid) {
  const auto scenario = sampleScenario(
      "expect: [hot_repair.failovers.count == 0, hot_repair.throughput.median > 1, "
      "hot_repair.status == ok, wrong_elements == 0, armed.throughput.median > 1]\n");
  auto unseen = faultedRun("hot_repair", 1);
  unseen.evidence[0].ok = false;
  const auto judged = evaluateExpectations(
      scenario, summarised({faultedRun("hot_repair", 0), unseen, sampleRun("armed", 0)}));
  for (const int line : {0, 1}) {
    EXPECT_TRUE(judged[line].is_void) << judged[line].text;
    EXPECT_FALSE(judged[line].pass) << judged[line].text;
    EXPECT_FALSE(judged[line].value.is_null()) << "what was found is still told";
    EXPECT_THAT(judged[line].message, HasSubstr("fault of hot_repair, block 2 was not seen"));
  }
  for (const int line : {2, 3, 4}) {
    EXPECT_FALSE(judged[line].is_void) << judged[line].text;
    EXPECT_TRUE(judged[line].pass) << judged[line].text;
  }
}

TEST(ExpectationsTest, OfASpeedThatIsMisMeasuredOrDrownsInNoiseTheyAreVoid) {
  const auto scenario = sampleScenario(
      "expect: [hot_repair.throughput.median > 100, hot_repair.failovers.count == 0]\n");
  auto result = summarised({sampleRun("fault_free", 0), faultedRun("hot_repair", 0)});
  result.summary.back().mis_measured = true;
  result.summary.back().note = "mis-measured: reason";
  auto judged = evaluateExpectations(scenario, result);
  EXPECT_TRUE(judged[0].is_void);
  EXPECT_EQ(judged[0].message, "mis-measured: reason.");
  EXPECT_TRUE(judged[1].pass) << "what was seen, was seen";

  result.summary.back().mis_measured = false;
  EXPECT_FALSE(evaluateExpectations(scenario, result)[0].is_void);
  result.noise.emplace().void_because = "too noisy";
  judged = evaluateExpectations(scenario, result);
  EXPECT_TRUE(judged[0].is_void);
  EXPECT_EQ(judged[0].message, "too noisy.");
  EXPECT_TRUE(judged[1].pass);
}

TEST(ExpectationsTest, CellsWithoutTheGoodputOfARailAreVoid) {
  scenario::ReadResult read = scenario::readScenario(
      "version: 1\nname: s\ncluster: {nodes: 4, rails: 2, rail_rate: 400Mbit}\n"
      "workload: {kind: collective, iterations: 3, collective: {sizes: 16MiB}}\nstrategies: "
      "[balance]\nexpect: [balance.cells.large.time_over_ideal <= 1.1, balance.status == ok]\n",
      "s");
  ASSERT_TRUE(read.ok());
  auto run = sampleRun("balance", 1);
  reports::CollectiveRow& row = run.collectives.emplace_back();
  row.size_bytes = 16 << 20;
  row.p50_ms = 100;
  const auto judged = [&] { return evaluateExpectations(*read.scenario, summarised({run})); };
  EXPECT_THAT(judged()[0].message, HasSubstr("Nothing of the kind happened"));
  run.goodput_missing = "the probe hung";
  EXPECT_TRUE(judged()[0].is_void);
  EXPECT_FALSE(judged()[0].pass);
  EXPECT_EQ(judged()[0].message, "balance, block 2: the probe hung.");
  EXPECT_TRUE(judged()[1].pass);
}

TEST(ExpectationsTest, TheOrderOfRowsWithTheirIntervals) {
  const auto scenario = sampleScenario(
      "repeat: 6\nexpect: [fail_stop.overhead_pct.ci95 > hot_repair.overhead_pct.ci95 > "
      "armed.overhead_pct.median]\n");
  auto result = summarised({sampleRun("fault_free", 0), faultedRun("hot_repair", 0)});
  result.summary.clear();
  const auto add = [&](const char* strategy, double low, double median, double high) {
    reports::Summary& row = result.summary.emplace_back();
    row.strategy = strategy;
    row.overhead_pct = reports::Overhead{median, reports::Interval{low, high}};
  };
  add("fail_stop", 40, 50, 60);
  add("hot_repair", 7, 8, 9);
  add("armed", 0.1, 0.5, 7.5);
  const auto judged = [&] { return evaluateExpectations(scenario, result).at(0); };
  EXPECT_TRUE(judged().pass) << judged().message;
  EXPECT_EQ(judged().value.dump(), "\"[40, 60]; [7, 9]; 0.5\"");
  result.summary[2].overhead_pct->median = 7.2;
  EXPECT_FALSE(judged().pass);
  EXPECT_FALSE(judged().is_void);
  EXPECT_EQ(judged().message, "hot_repair.overhead_pct.ci95 is not > armed.overhead_pct.median.");
  result.summary[2].mis_measured = true;
  result.summary[2].note = "mis-measured: reason";
  EXPECT_TRUE(judged().is_void) << "one row that is void suffices";
  result.summary[2].mis_measured = false;
  result.summary[2].overhead_pct.reset();
  EXPECT_THAT(judged().message, HasSubstr("The runs of armed are too few to say it"));
  EXPECT_TRUE(judged().value.is_null());
}

}  // namespace
}  // namespace faultline::run

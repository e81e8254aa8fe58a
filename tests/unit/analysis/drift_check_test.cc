#include "harness/analysis/drift_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/expectations.h"
#include "harness/analysis/summary.h"
#include "harness/analysis/verdict.h"
#include "harness/record/run_order.h"
#include "harness/scenario/json.h"
#include "reports/verdict_text.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

scenario::Scenario checkedScenario(const std::string& noise, const std::string& more = "") {
  return sampleScenario("repeat: 2\nnoise: {" + noise + "}\n" + more);
}

/// Runs of the drift check with these speeds, in the order of time, around two blocks.
std::vector<reports::Run> runsOf(const std::vector<double>& before,
                                 const std::vector<double>& after) {
  std::vector<reports::Run> runs;
  int block = 0;
  for (const double speed : before) runs.push_back(sampleRun("drift_check", block++, speed));
  for (int i = 0; i < 2; ++i) {
    for (const char* const row : {"fault_free", "armed", "fail_stop", "hot_repair"}) {
      runs.push_back(sampleRun(row, i));
    }
  }
  for (const double speed : after) runs.push_back(sampleRun("drift_check", block++, speed));
  return runs;
}

TEST(DriftCheckTest, IsMadeBeforeAndAfterAllOthersAndOnlyWhenAskedFor) {
  const scenario::Scenario scenario = checkedScenario("drift_check: 2");
  const auto plan = orderRuns(scenario, 7);
  ASSERT_EQ(plan.size(), 2u + 8u + 2u);
  const std::vector<std::pair<std::size_t, int>> places{{0, 0}, {1, 1}, {10, 2}, {11, 3}};
  for (const auto& [place, block] : places) {
    EXPECT_EQ(plan[place].strategy->name, "drift_check");
    EXPECT_EQ(plan[place].strategy->kind(), "fault_free");
    EXPECT_EQ(plan[place].strategy->options, scenario.find("fault_free")->options);
    EXPECT_EQ(plan[place].block, block);
    EXPECT_EQ(plan[place].arm, reports::Arm::kPlain);
  }
  for (std::size_t i = 2; i < 10; ++i) EXPECT_NE(plan[i].strategy->name, "drift_check");
  EXPECT_EQ(orderRuns(sampleScenario(), 7).size(), 8u);
  EXPECT_FALSE(driftOf(sampleScenario(), runsOf({10}, {5})));
  const auto again = scenario::readScenario(scenario::toJson(scenario).dump(), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, scenario);
}

TEST(DriftCheckTest, AMachineThatBecameAnotherOneIsVoid) {
  const auto scenario = checkedScenario("drift_check: 2");
  const auto quiet = driftOf(scenario, runsOf({10, 10.1}, {10, 9.9}));
  ASSERT_TRUE(quiet);
  EXPECT_EQ(quiet->before, 2);
  EXPECT_EQ(quiet->after, 2);
  EXPECT_NEAR(*quiet->drift_pct, 1.005, 0.001);
  EXPECT_EQ(quiet->limit_pct, 5);
  EXPECT_EQ(quiet->void_because, "");
  for (const double slow : {9.4, 10.7}) {
    const auto drifted = driftOf(scenario, runsOf({10, 10}, {slow, slow}));
    EXPECT_THAT(drifted->void_because, HasSubstr(slow < 10 ? "6.4 % more time" : "6.5 % less"));
    EXPECT_THAT(drifted->void_because, HasSubstr("too noisy"));
  }
  EXPECT_EQ(
      driftOf(checkedScenario("drift_check: 2, drift_above: 10%"), runsOf({10, 10}, {9.4, 9.4}))
          ->void_because,
      "");
}

TEST(DriftCheckTest, EqualRunsThatDifferAreVoid) {
  const auto scenario = checkedScenario("drift_check: 2");
  const auto noisy = driftOf(scenario, runsOf({10, 10}, {9.85, 10.15}));
  EXPECT_NEAR(*noisy->drift_pct, 0, 1e-9) << "no drift: the medians agree";
  EXPECT_THAT(noisy->void_because, HasSubstr("differed by up to 3.0 %"));
  EXPECT_EQ(
      driftOf(checkedScenario("drift_check: 2, void_above: 4%"), runsOf({10, 10}, {9.85, 10.15}))
          ->void_because,
      "");
}

TEST(DriftCheckTest, AcrossBlocksTheRunsThatAreThereAnywayAreLookedAt) {
  const auto scenario = sampleScenario("repeat: 5\nnoise: {across_blocks: on}\n");
  EXPECT_EQ(orderRuns(scenario, 7).size(), 5u * 4u) << "no run of its own";
  const auto driftAt = [&](const std::vector<double>& speeds) {
    std::vector<reports::Run> runs;
    for (std::size_t block = speeds.size(); block-- > 0;) {  // the order of runs says nothing
      runs.push_back(sampleRun("hot_repair", static_cast<int>(block), 1));
      runs.push_back(sampleRun("fault_free", static_cast<int>(block), speeds[block]));
    }
    return *driftOf(scenario, runs);
  };
  const reports::Drift quiet = driftAt({10, 10.1, 5, 10.05, 10});
  EXPECT_EQ(quiet.before, 2);
  EXPECT_EQ(quiet.after, 2) << "the middle one of five is in neither half";
  EXPECT_NEAR(*quiet.spread_pct, 1, 1e-9);
  EXPECT_EQ(quiet.void_because, "");
  EXPECT_THAT(reports::driftText(quiet), HasSubstr("2 fault-free runs of the first blocks and 2"));
  EXPECT_THAT(driftAt({10, 10, 10, 9.4, 9.4}).void_because,
              HasSubstr("6.4 % more time in the last"));
  EXPECT_THAT(driftAt({10, 9.7, 10, 9.85, 9.85}).void_because,
              HasSubstr("differed by up to 3.1 %"));
  EXPECT_THAT(driftAt({10, 10}).void_because, HasSubstr("2 have a speed, of those of the last 0"));
  const auto again = scenario::readScenario(scenario::toJson(scenario).dump(), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, scenario);
}

TEST(DriftCheckTest, WithoutASpeedOnBothSidesNobodyKnows) {
  const auto scenario = checkedScenario("drift_check: 1");
  auto runs = runsOf({10}, {10});
  runs.back().status = reports::RunStatus::kFailed;
  const auto drift = driftOf(scenario, runs);
  EXPECT_FALSE(drift->drift_pct);
  EXPECT_THAT(drift->void_because, HasSubstr("nobody knows"));
}

TEST(DriftCheckTest, AVoidResultIsInvalidAndNeverAPass) {
  const auto scenario = checkedScenario(
      "drift_check: 1", "expect: [wrong_elements == 0, armed.overhead_pct.median < 9]\n");
  reports::ScenarioResult result;
  result.runs = runsOf({10}, {10});
  const auto judged = [&] {
    result.drift = driftOf(scenario, result.runs);
    result.summary = summarise(scenario, result.runs, 7);
    result.expectations = evaluateExpectations(scenario, result);
    return verdictOf(scenario, result);
  };
  EXPECT_EQ(judged().verdict, reports::Verdict::kPass);
  result.runs.back().throughput->value = 9;
  const Judgement noisy = judged();
  EXPECT_EQ(noisy.verdict, reports::Verdict::kInvalid);
  EXPECT_THAT(noisy.reason, HasSubstr("the machine was too noisy"));
  result.verdict = noisy.verdict;
  EXPECT_EQ(reports::explainVerdict(result).headline,
            "Void: the machine was too noisy for any speed");
  EXPECT_THAT(reports::driftText(*result.drift), HasSubstr("! drift: 1 fault-free runs"));
  // Also when nothing is expected of any speed.
  scenario::Scenario lenient = scenario;
  lenient.expect.clear();
  result.expectations.clear();
  EXPECT_EQ(verdictOf(lenient, result).verdict, reports::Verdict::kInvalid);
  EXPECT_THAT(verdictOf(lenient, result).reason,
              HasSubstr("This result is void: the machine was too"));
  result.runs.back().throughput->value = 10;
  result.drift = driftOf(lenient, result.runs);
  EXPECT_EQ(verdictOf(lenient, result).verdict, reports::Verdict::kPass);
  // What is broken is broken, however fast the machine was.
  result.runs.back().throughput->value = 9;
  result.drift = driftOf(lenient, result.runs);
  result.runs[3].wrong_elements = 1;
  EXPECT_EQ(verdictOf(lenient, result).verdict, reports::Verdict::kFail);
}

}  // namespace
}  // namespace faultline::run

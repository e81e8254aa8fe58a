#include "reports/scenario_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ScenarioResult withPause(Percentiles pause) {
  ScenarioResult result = testing::sampleResult();
  result.summary[2].failover_pause_ms = pause;
  return result;
}

TEST(ScenarioTableTest, HasARowForEachStrategyThatMetFaults) {
  const std::vector<ScenarioResult> results{testing::sampleResult(), testing::sampleResult()};
  const std::string text = scenarioTable(results);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 2 * 2);
  EXPECT_THAT(text, HasSubstr("| fail_stop | 3 | no failover | - | - | pass |\n"));
  EXPECT_THAT(text, HasSubstr("| hot_repair | 3 |"));
  EXPECT_THAT(text, HasSubstr("| max <= 100 | pass |\n"));
  EXPECT_THAT(text, Not(HasSubstr("| fault_free |")));
}

TEST(ScenarioTableTest, PausesAreThoseOfTheSummary) {
  const auto pauses = [](const Percentiles& pause) {
    return scenarioTable(std::vector{withPause(pause)});
  };
  EXPECT_THAT(pauses({.p50 = 4.25, .p95 = {}, .p99 = {}, .max = 17.5, .n = 40}),
              HasSubstr("| 4.2 / >17.5 |"));
  EXPECT_THAT(pauses({.p50 = 4.25, .p95 = 9, .p99 = 12, .max = 17.5, .n = 400}),
              HasSubstr("| 4.2 / 12.0 |"));
}

TEST(ScenarioTableTest, CausesAreCountedTheMostFrequentFirst) {
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) run.failovers.clear();
  for (int i = 0; i < 3; ++i) {
    Failover& failover = result.runs[2].failovers.emplace_back();
    failover.cause = i == 0 ? "local_nic" : "path";
    failover.dead_direction = i == 0 ? "unknown" : "outgoing";
  }
  result.runs[2].strategy = "hot_repair";
  EXPECT_THAT(scenarioTable(std::vector{result}), HasSubstr("| path (outgoing) 2, local_nic 1 |"));
}

TEST(ScenarioTableTest, SaysWhichAimIsMissedOrVoid) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;
  result.expectations[2].pass = false;
  EXPECT_THAT(scenarioTable(std::vector{result}),
              HasSubstr("| max <= 100 (fails) | fail: 1 of 4 |"));
  result.verdict = Verdict::kInvalid;
  result.expectations[2].is_void = true;
  EXPECT_THAT(scenarioTable(std::vector{result}), HasSubstr("| max <= 100 (void) | invalid |"));
  result.expectations[2].text = "hot_repair.failovers.after_return_ms <= 50";
  result.expectations[2].pass = true;
  EXPECT_THAT(scenarioTable(std::vector{result}), HasSubstr("| after_return_ms <= 50 |"));
}

TEST(ScenarioTableTest, TextOfAResultCannotLeaveItsCell) {
  ScenarioResult result = testing::sampleResult();
  result.scenario["name"] = "a | b\nc";
  EXPECT_THAT(scenarioTable(std::vector{result}), HasSubstr("| a \\| b c |"));
}

}  // namespace
}  // namespace faultline::reports

#include "harness/analysis/joined.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace faultline::run {
namespace {

using reports::ScenarioResult;
using reports::Verdict;

constexpr const char* kStrategy = "hot_repair";

/// A piece of a scenario: one faulted run with these pauses.
ScenarioResult piece(const std::string& name, int repeat, const std::vector<double>& pauses) {
  ScenarioResult result;
  result.scenario = {{"name", name}, {"repeat", repeat}, {"seed", repeat}};
  result.verdict = Verdict::kPass;
  reports::Run& run = result.runs.emplace_back();
  run.strategy = kStrategy;
  run.faulted = true;
  for (const double pause : pauses) run.failovers.emplace_back().pause_ms = pause;
  result.summary.emplace_back().strategy = kStrategy;
  result.expectations.push_back(
      {.text = "wrong_elements == 0", .value = 0, .pass = true, .message = ""});
  return result;
}

TEST(JoinedTest, PiecesOfAScenarioAreOneResultWithAllPauses) {
  const auto wholes = joined({piece("a", 2, std::vector<double>(200, 4)), piece("b", 1, {7}),
                              piece("a", 1, std::vector<double>(100, 90))});
  ASSERT_EQ(wholes.size(), 2U);
  EXPECT_EQ(reports::scenarioName(wholes[0]), "a");
  EXPECT_EQ(wholes[0].runs.size(), 2U);
  const auto& pause = wholes[0].summary[0].failover_pause_ms;
  ASSERT_TRUE(pause.has_value());
  EXPECT_EQ(pause->n, 300);
  EXPECT_EQ(pause->p50, 4);
  EXPECT_EQ(pause->p99, 90) << "no piece has enough of them";
  EXPECT_EQ(wholes[1].summary[0].failover_pause_ms->n, 1);
}

TEST(JoinedTest, AnExpectationHoldsThatHoldsInEachPiece) {
  ScenarioResult bad = piece("a", 1, {});
  bad.expectations[0].pass = false;
  bad.expectations[0].value = 3;
  bad.verdict = Verdict::kFail;
  const auto wholes = joined({piece("a", 2, {}), bad, piece("a", 3, {})});
  ASSERT_EQ(wholes.size(), 1U);
  EXPECT_FALSE(wholes[0].expectations[0].pass);
  EXPECT_EQ(wholes[0].expectations[0].value, 3);
  EXPECT_EQ(wholes[0].verdict, Verdict::kFail);
}

TEST(JoinedTest, TheWorstVerdictCounts) {
  const auto verdict = [](Verdict one, Verdict other) {
    std::vector<ScenarioResult> pieces{piece("a", 1, {}), piece("a", 2, {})};
    pieces[0].verdict = one;
    pieces[1].verdict = other;
    return joined(pieces)[0].verdict;
  };
  EXPECT_EQ(verdict(Verdict::kPass, Verdict::kPass), Verdict::kPass);
  EXPECT_EQ(verdict(Verdict::kPass, Verdict::kInvalid), Verdict::kInvalid);
  EXPECT_EQ(verdict(Verdict::kInvalid, Verdict::kFail), Verdict::kFail);
  EXPECT_EQ(verdict(Verdict::kFail, Verdict::kError), Verdict::kError);
}

TEST(JoinedTest, WhatAnotherProgramDidIsAnotherResult) {
  ScenarioResult later = piece("a", 1, {});
  later.environment.git = "abc";
  EXPECT_EQ(joined({piece("a", 1, {}), later}).size(), 2U);
}

TEST(JoinedTest, AnotherSettingIsAnotherScenario) {
  ScenarioResult faster = piece("a", 1, {});
  faster.scenario["cluster"] = {{"rail_rate", "1Gbit"}};
  EXPECT_EQ(joined({piece("a", 1, {}), faster}).size(), 2U);
}

}  // namespace
}  // namespace faultline::run

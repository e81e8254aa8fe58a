#include "harness/record/run_order.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>

namespace faultline::run {
namespace {

scenario::Scenario withStrategies(int repeat) {
  scenario::Scenario scenario;
  scenario.repeat = repeat;
  for (const char* name : {"fault_free", "armed", "fail_stop", "hot_repair"}) {
    scenario.strategies.push_back({name, {}});
  }
  return scenario;
}

std::vector<std::string> names(const std::vector<PlannedRun>& plan) {
  std::vector<std::string> names;
  for (const PlannedRun& run : plan) names.push_back(run.strategy->name);
  return names;
}

TEST(PlanTest, EveryBlockRunsEveryStrategyOnce) {
  const scenario::Scenario scenario = withStrategies(5);
  const auto plan = orderRuns(scenario, 7);
  ASSERT_EQ(plan.size(), 20u);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(plan[i].block, static_cast<int>(i / 4)) << "blocks come one after the other";
  }
  for (std::size_t block = 0; block < 5; ++block) {
    std::set<const scenario::Strategy*> seen;
    for (std::size_t i = 0; i < 4; ++i) seen.insert(plan[block * 4 + i].strategy);
    EXPECT_EQ(seen.size(), 4u);
  }
}

TEST(PlanTest, EqualSeedsGiveEqualPlansAndOthersDoNot) {
  const scenario::Scenario scenario = withStrategies(5);
  EXPECT_EQ(names(orderRuns(scenario, 7)), names(orderRuns(scenario, 7)));
  EXPECT_NE(names(orderRuns(scenario, 7)), names(orderRuns(scenario, 8)));
}

TEST(PlanTest, NoStrategyIsFavoured) {
  constexpr int kBlocks = 4000;
  const scenario::Scenario scenario = withStrategies(kBlocks);
  const auto plan = orderRuns(scenario, 1);
  std::map<std::string, std::array<int, 4>> places;
  for (std::size_t i = 0; i < plan.size(); ++i) ++places[plan[i].strategy->name][i % 4];
  for (const auto& [name, counts] : places) {
    for (const int count : counts) EXPECT_NEAR(count, kBlocks / 4., kBlocks / 40.) << name;
  }
}

TEST(PlanTest, ArmsFollowTheTableOfStrategies) {
  const scenario::Scenario scenario = withStrategies(1);
  std::map<std::string, reports::Arm> arms;
  for (const PlannedRun& run : orderRuns(scenario, 7)) arms[run.strategy->name] = run.arm;
  EXPECT_EQ(arms["fault_free"], reports::Arm::kPlain);
  EXPECT_EQ(arms["armed"], reports::Arm::kArmed);
  EXPECT_EQ(arms["fail_stop"], reports::Arm::kFaulted);
  EXPECT_EQ(arms["hot_repair"], reports::Arm::kFaulted);
}

TEST(PlanTest, NothingToDoIsAnEmptyPlan) {
  EXPECT_TRUE(orderRuns(withStrategies(0), 7).empty());
  scenario::Scenario none;
  none.repeat = 3;
  EXPECT_TRUE(orderRuns(none, 7).empty());
}

}  // namespace
}  // namespace faultline::run

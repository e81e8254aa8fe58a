#include "reports/overview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OverviewTest, HasEveryStrategyWithItsIntervalAndTheBound) {
  ScenarioResult result = testing::sampleResult();
  result.summary.reserve(result.summary.size() + 2);  // rows are referred to below
  Summary& hot = result.summary[2];
  ASSERT_EQ(hot.strategy, "hot_repair");
  hot.overhead_pct->ci95 = Interval{15, 26};
  Summary& modelled = result.summary.emplace_back();
  modelled.strategy = "restart_at_scale";
  modelled.origin = Origin::kModelled;
  modelled.fault_cost = FaultCost{.seconds = 68 * 60};
  Summary& server = result.summary.emplace_back();
  server.strategy = "kv_replicate";
  server.origin = Origin::kModelled;
  server.fault_cost = FaultCost{245, 31};
  const OverviewEntry entry{&result, "./quickstart/report.html"};
  const Json scenarios = overviewView(std::span(&entry, 1))["scenarios"];
  ASSERT_EQ(scenarios.size(), 1u);
  const Json& one = scenarios[0];
  EXPECT_EQ(one["name"], "quickstart");
  EXPECT_EQ(one["verdict"], "pass");
  EXPECT_EQ(one["report"], "./quickstart/report.html");
  ASSERT_EQ(one["rows"].size(), result.summary.size());
  const Json& row = one["rows"][2];
  EXPECT_EQ(row["strategy"], "hot_repair");
  EXPECT_EQ(row["overhead_pct"], hot.overhead_pct->median);
  EXPECT_EQ(row["ci95"], (Json{15.0, 26.0}));
  EXPECT_EQ(row["bound_pct"], *hot.bound_pct);
  EXPECT_EQ(row["pause_ms"]["n"], 12);
  EXPECT_EQ(one["rows"][0]["overhead_pct"], nullptr) << "the reference has none";
  EXPECT_EQ(one["rows"].back()["fault_cost_text"], "245 s of 31 req");
  EXPECT_EQ(one["rows"].back()["overhead_pct"], nullptr);
  const Json& last = one["rows"][one["rows"].size() - 2];
  EXPECT_EQ(last["origin"], "modelled");
  EXPECT_EQ(last["ci95"], nullptr);
  EXPECT_EQ(last["fault_cost_text"], "68 min of the job");
  EXPECT_EQ(last["status"], "-") << "no run was made";
}

TEST(OverviewTest, ResultsOfOneScenarioHaveAnchorsOfTheirOwn) {
  const ScenarioResult result = testing::sampleResult();
  const std::vector<OverviewEntry> twice{{&result, ""}, {&result, ""}};
  const Json scenarios = overviewView(twice)["scenarios"];
  EXPECT_EQ(scenarios[0]["id"], "quickstart");
  EXPECT_EQ(scenarios[1]["id"], "quickstart:2");
}

TEST(OverviewTest, LoadsNothingAndRunsNothingOfAResult) {
  const ScenarioResult hostile = testing::hostileResult();
  const OverviewEntry entry{&hostile, "</script><script>hacked"};
  const std::string page = overviewHtml(std::span(&entry, 1));
  EXPECT_THAT(page, Not(HasSubstr("</script><script>hacked")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_LT(page.size(), 100'000u);
}

}  // namespace
}  // namespace faultline::reports

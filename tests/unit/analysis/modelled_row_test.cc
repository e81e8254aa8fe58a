#include "harness/analysis/modelled_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/analysis/summary.h"
#include "harness/analysis/verdict.h"
#include "harness/baseline/strategy_table.h"
#include "harness/record/run_order.h"
#include "tests/support/sample_scenario.h"

// A modelled strategy has a row, and nothing else: no run, and nothing that is expected of it.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

scenario::Scenario withModel(const std::string& options = "") {
  const std::string yaml =
      "version: 1\nname: sample\nworkload: {kind: training}\n"
      "strategies: [fault_free, {restart_at_scale: {as: big" +
      options + "}}]\n";
  scenario::ReadResult read = scenario::readScenario(yaml, "sample");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

TEST(ModelledRowTest, IsMarkedAndSaysWhatItStandsOn) {
  const auto scenario = withModel(", load: 63min");
  const auto rows = summarise(scenario, {}, 7);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].origin, reports::Origin::kMeasured);
  const reports::Summary& row = rows[1];
  EXPECT_EQ(row.strategy, "big");
  EXPECT_EQ(row.origin, reports::Origin::kModelled);
  EXPECT_EQ(row.n, 0);
  EXPECT_FALSE(row.overhead_pct) << "that of executed rows is of a run with its faults";
  ASSERT_TRUE(row.fault_cost && row.model);
  EXPECT_EQ(row.fault_cost->seconds, 6000);
  EXPECT_FALSE(row.fault_cost->requests);
  EXPECT_THAT(row.note, HasSubstr("modelled, not executed: what one fault costs the job"));
  EXPECT_THAT(row.note, HasSubstr(": detect 16.5 min"));
  EXPECT_THAT(row.note, Not(HasSubstr("longer by"))) << "beside executed rows it would mislead";
  ASSERT_EQ(row.model->parameters.size(), 5u);
  EXPECT_EQ(row.model->parameters[2].name, "load");
  EXPECT_EQ(row.model->parameters[2].value, "63min");
  EXPECT_THAT(row.model->parameters[2].meaning, HasSubstr("15 to 47 min"));
  ASSERT_GE(row.model->terms.size(), 2u);
  EXPECT_EQ(row.model->terms[row.model->terms.size() - 2].value, 100);
  EXPECT_EQ(row.model->terms.back().name, "the job until the next fault longer by");
  EXPECT_NEAR(row.model->terms.back().value, 100 * 100.0 / 435, 1e-9);
}

TEST(ModelledRowTest, WithoutAServerNothingIsMadeUpOfRequests) {
  const baseline::StrategySpec& spec = *baseline::findStrategy("kv_replicate");
  const scenario::Strategy strategy{"kv_replicate",
                                    Parameters::parse(spec.name, spec.options, {}).value()};
  const reports::Summary unknown = modelledRow(strategy, Status(Code::kNotFound, "no server"));
  EXPECT_FALSE(unknown.overhead_pct);
  EXPECT_EQ(unknown.origin, reports::Origin::kModelled);
  EXPECT_THAT(unknown.note, HasSubstr("no number: no server"));
  const baseline::ServingCase full{.requestsPerSecond = 5,
                                   .capacity = 4,
                                   .requests = 500,
                                   .endToEndSeconds = 3,
                                   .bytesPerSecond = 1e9};
  const reports::Summary never = modelledRow(strategy, full);
  EXPECT_THAT(never.note, HasSubstr("the backlog stays or grows"));
  EXPECT_FALSE(never.fault_cost) << "what never ends has no sum";
}

TEST(ModelledRowTest, OfAServerItIsWhatOneFaultCostsAndNoPercentage) {
  const baseline::StrategySpec& spec = *baseline::findStrategy("kv_replicate");
  const scenario::Strategy strategy{"kv_replicate",
                                    Parameters::parse(spec.name, spec.options, {}).value()};
  const baseline::ServingCase serving{.requestsPerSecond = 2,
                                      .capacity = 4,
                                      .requests = 500,
                                      .firstTokenSeconds = 1,
                                      .tokenSeconds = 0.02,
                                      .endToEndSeconds = 3,
                                      .bytesPerSecond = 1e9};
  const reports::Summary row = modelledRow(strategy, serving);
  EXPECT_FALSE(row.overhead_pct) << "that of executed rows is of other requests";
  ASSERT_TRUE(row.fault_cost && row.model);
  const auto valueOf = [&](std::string_view name) {
    const auto term = std::ranges::find(row.model->terms, name, &reports::ModelTerm::name);
    return term == row.model->terms.end() ? -1 : term->value;
  };
  EXPECT_EQ(row.fault_cost->seconds, valueOf("extra time of all requests, of one fault"));
  EXPECT_EQ(row.fault_cost->requests, valueOf("requests that take longer"));
  EXPECT_GT(row.fault_cost->seconds, 0);
  EXPECT_GT(valueOf("all requests until the next fault longer by"), 0);
  EXPECT_GT(valueOf("TTFT longer by"), 0);
  EXPECT_THAT(row.note, Not(HasSubstr("longer by"))) << "beside executed rows it would mislead";
}

TEST(ModelledRowTest, IsNeitherRunNorMissed) {
  const auto scenario = withModel();
  const auto plan = orderRuns(scenario, 7);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].strategy->name, "fault_free");
  reports::ScenarioResult result;
  result.runs = {sampleRun("fault_free", 0)};
  EXPECT_EQ(verdictOf(scenario, result).verdict, reports::Verdict::kPass);
  result.interrupted = true;
  EXPECT_THAT(verdictOf(scenario, result).reason, HasSubstr("1 of 1 runs"));
}

}  // namespace
}  // namespace faultline::run

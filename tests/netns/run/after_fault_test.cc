#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/input_file.h"
#include "run_fixture.h"

// What becomes of a job after its fault, and whether all strategies had the same one: from the
// scenario to the result.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

/// Two nodes, so that as many ranks as cores work; two seconds are left after the fault.
std::string afterFaultScenario(const std::string& limits, const std::string& strategies,
                               const std::string& faults, const std::string& expect) {
  return fmt::format(R"(version: 1
name: after
cluster: {{kind: netns, nodes: 2, rails: 2, rail_rate: 400Mbit}}
workload:
  kind: training
  iterations: 90
  compute: 10ms
  gradient: {{size: 2MiB, buckets: 2}}
strategies: {}
faults: {}
limits: {{deadline: 30s{}}}
seed: 7
expect: {}
)",
                     strategies, faults, limits, expect);
}

constexpr const char* kOutage =
    "[{kind: port_down, target: {node: 1, rail: 0}, during: {iteration: 10, progress: 50%}, "
    "duration: 300ms}]";
constexpr const char* kGate = "[hot_repair.back_to_95_pct_ms.max <= 25s]";

class AfterFaultRunTest : public RunTest {
 protected:
  /// The run of hot_repair, and the verdict on kGate, which is void where nobody watched so long.
  reports::Run runWith(const std::string& limits, bool holds) {
    const auto ran = run(afterFaultScenario(limits, "[fault_free, hot_repair]", kOutage, kGate));
    EXPECT_EQ(ran.exit, holds ? 0 : 5) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("in the second after the last fault"));
    const reports::ScenarioResult result = this->result();
    EXPECT_EQ(result.expectations.at(0).pass, holds) << ran.out;
    EXPECT_EQ(result.expectations.at(0).is_void, !holds) << ran.out;
    const reports::Run own = runOf(result, "hot_repair");
    EXPECT_TRUE(own.after_fault) << ran.out;
    if (!own.after_fault) return own;
    EXPECT_EQ(own.after_fault->counted, "iterations");
    EXPECT_GT(own.after_fault->watched_ms, 1000);
    EXPECT_EQ(own.after_fault->reverted_ms, own.faults.at(0).end_ms);
    EXPECT_FALSE(runOf(result, "fault_free").after_fault);
    return own;
  }
};

TEST_F(AfterFaultRunTest, ARailThatIsTakenBackBringsTheSpeedBack) {
  const reports::Run run = runWith("", /*holds=*/true);
  ASSERT_TRUE(run.back_to_95_pct_ms);
  EXPECT_LE(*run.back_to_95_pct_ms + 1000, run.after_fault->watched_ms);
}

TEST_F(AfterFaultRunTest, ARailThatIsHeldOffUntilTheEndDoesNot) {
  const reports::Run run = runWith(", hold_off: 20s, longest_hold_off: 20s", /*holds=*/false);
  EXPECT_FALSE(run.back_to_95_pct_ms);
  ASSERT_TRUE(run.after_pct);
  EXPECT_LT(*run.after_pct, 95);
  EXPECT_THAT(result().expectations.at(0).value.get<std::string>(), HasSubstr("at least"));
  const auto csv = readFile(out() + "/results.csv");
  ASSERT_TRUE(csv.ok()) << csv.status().message();
  EXPECT_THAT(*csv, HasSubstr(",inf,"));
}

TEST_F(AfterFaultRunTest, EveryStrategyHasTheLossesThatWereAskedFor) {
  const auto ran = run(afterFaultScenario(
      "", "[fault_free, balance, hot_repair]",
      "[{kind: port_flap, period: 200ms, target: {node: 1, rail: 0}, at: 500ms, duration: 400ms}]",
      "[wrong_elements == 0]"));
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::ScenarioResult result = this->result();
  for (const char* const strategy : {"balance", "hot_repair"}) {
    const reports::Run run = runOf(result, strategy);
    ASSERT_EQ(run.faults.size(), 1u) << strategy;
    EXPECT_EQ(run.faults[0].losses, 2) << strategy;
    EXPECT_EQ(run.faults[0].asked.losses, 2) << strategy;
    EXPECT_EQ(run.void_because, "") << strategy;
  }
}

}  // namespace
}  // namespace faultline::run

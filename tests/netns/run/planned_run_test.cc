#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "reports/result_json.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/run_program.h"

// Strategies that plan, from the scenario to the result.

namespace faultline::run {
namespace {

using testing::runFaultline;
using testing::TemporaryFolder;

constexpr const char* kHead =
    "version: 1\nname: planned\nlimits: {deadline: 60s, give_up: 10s}\nseed: 7\n";
constexpr const char* kCluster =
    "cluster: {kind: netns, nodes: 4, ranks_per_node: 1, rails: 1, rail_rate: 400Mbit}\n";

reports::ScenarioResult resultOf(const std::string& rest) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const auto ran = runFaultline({"run", folder.write("scenario.yaml", kHead + rest), "--out", out});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  auto read = reports::readResult(out);
  if (!read.ok()) throw std::runtime_error(read.status().message());
  return std::move(*read);
}

/// For the message of a case that has failed on a machine that may be busy.
std::string planned(const reports::Run& run) {
  std::string text = "plans:";
  for (const reports::AppliedPlan& plan : run.plans) {
    text += fmt::format("\n  {:.0f} ms: {} by {}, {} segments, {:.4g} bytes/s, send receive",
                        plan.at_ms, plan.collective, plan.algorithm, plan.segments,
                        plan.link.bandwidth);
    for (const reports::PortHealth& port : plan.health) {
      text += fmt::format(" {:.2f} {:.2f}", port.send, port.receive);
    }
  }
  return text;
}

/// Rank 1 has about half of its port, and nobody less. What the others seem to have is measured on
/// a machine that may be busy.
bool isForHalf(const reports::AppliedPlan& plan) {
  constexpr double kTolerance = 0.15;
  const auto least = [](const reports::PortHealth& port) {
    return std::min(port.send, port.receive);
  };
  const auto slowest = std::ranges::min_element(plan.health, {}, least);
  return plan.health.size() == 4 && slowest == plan.health.begin() + 1 &&
         std::abs(least(*slowest) - 0.5) <= kTolerance;
}

TEST(PlannedRunTest, APortThatBecomesSlowChangesThePlansOfAllRanks) {
  const reports::ScenarioResult result = resultOf(kCluster + std::string(R"(
workload:
  kind: training
  iterations: 10
  warmup_iterations: 2
  compute: 10ms
  gradient: {size: 16MiB, buckets: 2}
strategies: [optcc, auto]
faults:
  - {kind: throttle, rate: 50%, target: {node: 1, rail: 0}, during: {iteration: 3, progress: 50%}, until: end}
expect:
  - wrong_elements == 0
  - optcc.plans.changes >= 1
  - auto.plans.changes >= 1
  - auto.plans.algorithm != ring
)"));
  ASSERT_EQ(result.runs.size(), 2u);
  for (const reports::Run& run : result.runs) {
    SCOPED_TRACE(run.strategy);
    EXPECT_EQ(run.status, reports::RunStatus::kOk)
        << "all ranks told the same hashes: " << run.message;
    const double struck = run.faults.at(0).start_ms;
    const bool known = std::ranges::any_of(run.plans, [&](const reports::AppliedPlan& plan) {
      return plan.bytes == 8 << 20 && plan.at_ms > struck && isForHalf(plan) &&
             plan.predicted_ms < plan.ring_ms;
    });
    EXPECT_TRUE(known) << "no plan for the port that has become slow";
  }
}

TEST(PlannedRunTest, RailsThatAreLostInTheMiddleOfACallCostNoElement) {
  const reports::ScenarioResult result = resultOf(R"(
cluster: {kind: netns, nodes: 4, ranks_per_node: 1, rails: 4, rail_rate: 100Mbit}
workload:
  kind: training
  iterations: 8
  warmup_iterations: 1
  compute: 10ms
  gradient: {size: 8MiB, buckets: 2}
strategies: [r2_allreduce, optcc, auto]
faults:
  - {kind: port_down, how: carrier, target: {node: 1, rail: 0}, during: {iteration: 3, progress: 50%}, until: end}
  - {kind: port_down, how: carrier, target: {node: 1, rail: 1}, during: {iteration: 3, progress: 50%}, until: end}
expect:
  - wrong_elements == 0
  - evidence.ok == true
)");
  ASSERT_EQ(result.runs.size(), 3u);
  for (const reports::Run& run : result.runs) {
    SCOPED_TRACE(run.strategy);
    EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
    EXPECT_GT(run.checked_elements, 0);
    // Both ends of the links of node 1, in the middle of a call.
    EXPECT_GE(std::ssize(run.failovers), 4);
    // Its own, and the other three, by what is left of its rails.
    const bool known = std::ranges::any_of(run.plans, [&](const reports::AppliedPlan& plan) {
      return plan.at_ms > run.faults.at(0).start_ms && isForHalf(plan);
    });
    EXPECT_TRUE(known) << "no plan for what is left; " << planned(run);
  }
}

TEST(PlannedRunTest, ArmedIsReadyForFaultsAsTheStrategyThatItIsLike) {
  const reports::ScenarioResult result = resultOf(kCluster + std::string(R"(
workload:
  kind: training
  iterations: 6
  warmup_iterations: 2
  compute: 10ms
  gradient: {size: 4MiB, buckets: 2}
strategies: [armed, {armed: {as: ready, like: auto}}]
expect:
  - wrong_elements == 0
  - status == ok
)"));
  ASSERT_EQ(result.runs.size(), 2u);
  for (const reports::Run& run : result.runs) {
    SCOPED_TRACE(run.strategy);
    EXPECT_EQ(run.arm, reports::Arm::kArmed);
    EXPECT_TRUE(run.faults.empty());
    EXPECT_EQ(run.plans.empty(), run.strategy == "armed");
  }
}

TEST(PlannedRunTest, TheBandwidthOfFourRailsIsMeasuredAtTheStart) {
  const reports::ScenarioResult result = resultOf(R"(
cluster: {kind: netns, nodes: 4, ranks_per_node: 1, rails: 4, rail_rate: 100Mbit}
workload:
  kind: collective
  iterations: 1
  warmup_iterations: 1
  collective: {operations: all_reduce, sizes: 1MiB}
strategies: [optcc]
)");
  const reports::AppliedPlan& plan = result.runs.at(0).plans.at(0);
  // Headers of Ethernet, IP and TCP take 4 %.
  const double payload = 4 * 100e6 / 8 * 0.957;
  EXPECT_NEAR(plan.link.bandwidth, payload, 0.08 * payload);
}

TEST(PlannedRunTest, TheTimesOfASweepAreThoseOfThePlanThatFits) {
  const reports::ScenarioResult result = resultOf(kCluster + std::string(R"(
workload:
  kind: collective
  iterations: 10
  warmup_iterations: 1
  collective: {operations: all_reduce, sizes: 8MiB}
strategies: [optcc]
faults:
  - {kind: throttle, rate: 50%, target: {node: 1, rail: 0}, at: 0s, until: end}
)"));
  const reports::CollectiveRow& row = result.runs.at(0).collectives.at(0);
  EXPECT_FALSE(row.unsettled);
  EXPECT_GE(row.left_out, 1) << "the first call was planned for whole ports";
  EXPECT_EQ(row.n + row.left_out, 10);
  ASSERT_TRUE(row.bound && row.model);
  EXPECT_GE(*row.model, *row.bound);
  EXPECT_LT(*row.model, 2) << "of a ring";
}

TEST(PlannedRunTest, APortThatSendsSlowlyIsSparedByRelays) {
  const reports::ScenarioResult result = resultOf(kCluster + std::string(R"(
workload:
  kind: collective
  iterations: 14
  warmup_iterations: 1
  collective: {operations: all_gather, sizes: 8MiB}
strategies: [auto]
faults:
  - {kind: throttle, rate: 25%, direction: tx, target: {node: 1, rail: 0}, at: 0s, until: end}
)"));
  const reports::Run& run = result.runs.at(0);
  EXPECT_EQ(run.wrong_elements, 0);
  const auto relayed = std::ranges::find_if(run.plans, [](const reports::AppliedPlan& plan) {
    return plan.collective == "all_gather" && plan.algorithm == "relay_all_gather";
  });
  ASSERT_NE(relayed, run.plans.end()) << planned(run);
  EXPECT_LT(relayed->health.at(1).send, 0.5);
  EXPECT_GT(relayed->health.at(1).receive, 0.6);
  const reports::CollectiveRow& row = run.collectives.at(0);
  EXPECT_GE(row.left_out, 1) << "the first call was planned for whole ports";
  ASSERT_TRUE(row.bound && row.model);
  EXPECT_GE(*row.model, *row.bound);
  EXPECT_LT(*row.model, 2) << "of a ring: 4";
}

}  // namespace
}  // namespace faultline::run

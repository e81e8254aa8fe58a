#include "harness/record/plan_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/run_counts.h"
#include "harness/record/run_record.h"
#include "tests/support/sample_scenario.h"

// What the ranks tell of their plans.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

constexpr TimePoint kRunStart = TimePoint(1000s);
constexpr int kPlanners = 4;

using Plans = std::vector<wire::Plan>;

wire::Plan toldPlan(std::uint64_t operation, const std::string& hash, int ms = 0,
                    std::int64_t bytes = 4096, std::uint64_t epoch = 0,
                    const std::string& algorithm = "optcc") {
  return {.at = kRunStart + ms * 1ms,
          .communicator = 1,
          .epoch = epoch,
          .operation = operation,
          .elements = bytes / 4,
          .bytes = bytes,
          .collective = "all_reduce",
          .algorithm = algorithm,
          .segments = 16,
          .health = {{1.0, 1.0}, {0.5, 0.25}},
          .predictedMs = 12.5,
          .ringMs = 20,
          .boundMs = 11,
          .hash = hash,
          .latencyUs = 40,
          .perMessageUs = 3,
          .bandwidth = 5e7};
}

TEST(PlanRecordTest, ThoseOfRankZeroAreKept) {
  PlanRecord record;
  record.told(1, {toldPlan(7, "a", 150)}, kRunStart);
  record.told(0, {toldPlan(7, "a", 149)}, kRunStart);
  ASSERT_EQ(record.plans().size(), 1u);
  const reports::AppliedPlan& kept = record.plans().front();
  EXPECT_EQ(kept.at_ms, 149);
  EXPECT_EQ(kept.communicator, 1u);
  EXPECT_EQ(kept.operation, 7u);
  EXPECT_EQ(kept.elements, 1024);
  EXPECT_EQ(kept.bytes, 4096);
  EXPECT_EQ(kept.collective, "all_reduce");
  EXPECT_EQ(kept.algorithm, "optcc");
  EXPECT_EQ(kept.segments, 16);
  ASSERT_EQ(kept.health.size(), 2u);
  EXPECT_EQ(kept.health[1].send, 0.5);
  EXPECT_EQ(kept.health[1].receive, 0.25);
  EXPECT_EQ(kept.predicted_ms, 12.5);
  EXPECT_EQ(kept.ring_ms, 20);
  EXPECT_EQ(kept.bound_ms, 11);
  EXPECT_EQ(kept.hash, "a");
  EXPECT_EQ(kept.link.latency_us, 40);
  EXPECT_EQ(kept.link.per_message_us, 3);
  EXPECT_EQ(kept.link.bandwidth, 5e7);
}

TEST(PlanRecordTest, ADifferenceIsNamed) {
  PlanRecord record;
  record.told(0, {toldPlan(7, "a"), toldPlan(9, "b")}, kRunStart);
  record.told(1, {toldPlan(7, "a")}, kRunStart);
  EXPECT_EQ(record.disagreement(0), "") << "rank 1 may not have come to operation 9";
  EXPECT_THAT(record.disagreement(2), HasSubstr("operation 9"));
  EXPECT_THAT(record.disagreement(2), HasSubstr("1 of 2 ranks"));
  record.told(1, {toldPlan(9, "c")}, kRunStart);
  EXPECT_THAT(record.disagreement(0), HasSubstr("by rank 0 as b, by rank 1 as c"));
}

TEST(PlanRecordTest, AfterARestartOperationsCountFromZeroAgain) {
  PlanRecord record;
  record.told(0, {toldPlan(7, "a")}, kRunStart);
  record.cutOff();
  for (int rank = 0; rank < 2; ++rank) record.told(rank, {toldPlan(7, "b")}, kRunStart);
  EXPECT_EQ(record.disagreement(2), "");
  EXPECT_EQ(record.plans().size(), 2u);
}

/// Of a whole run in which each rank tells what `plans_of` says.
template <typename PlansOf>
reports::Run runWith(PlansOf plans_of, bool fails = false) {
  static const scenario::Scenario scenario = sampleScenario();
  const PlannedRun planned{0, scenario.find("hot_repair"), reports::Arm::kFaulted};
  RunRecord record(scenario, planned);
  record.started(kRunStart);
  for (int rank = 0; rank < kPlanners; ++rank) record.events(rank, {.plans = plans_of(rank)});
  if (fails) record.failed(kRunStart, reports::RunStatus::kFailed, "gave up");
  return record.finish({}).run;
}

TEST(PlanRecordTest, ARunWhoseRanksPlannedDifferentlyIsInvalid) {
  const auto same = runWith([](int) { return Plans{toldPlan(3, "a")}; });
  EXPECT_EQ(same.status, reports::RunStatus::kOk) << same.message;
  EXPECT_EQ(same.plans.size(), 1u);
  const auto other = runWith([](int rank) { return Plans{toldPlan(3, rank == 2 ? "b" : "a")}; });
  EXPECT_EQ(other.status, reports::RunStatus::kInvalid);
  EXPECT_THAT(other.message, HasSubstr("by rank 2 as b"));
  const auto missing = [](int rank) { return rank == 2 ? Plans{} : Plans{toldPlan(3, "a")}; };
  EXPECT_EQ(runWith(missing).status, reports::RunStatus::kInvalid);
  EXPECT_EQ(runWith(missing, /*fails=*/true).message, "gave up")
      << "of a job that ended early not all ranks have told";
}

TEST(RunCountsTest, ChangesAreThoseOfHealthAndTheLastPlanOfTheLargestSizeCounts) {
  wire::Plan other = toldPlan(7, "e", 70, 2 << 20, 2, "ring_all_gather");
  other.collective = "all_gather";  // not what the run came to
  const auto run = runWith([&other](int) {
    return Plans{other, toldPlan(1, "a", 0, 8, 0, "tree"), toldPlan(2, "b", 10, 1 << 20, 0, "ring"),
                 toldPlan(5, "c", 50, 1 << 20, 2, "optcc"), toldPlan(6, "d", 60, 8, 2, "tree")};
  });
  EXPECT_EQ(planChanges(run), 1u) << "epoch 1 was never used";
  ASSERT_NE(lastPlanOfLargest(run), nullptr);
  EXPECT_EQ(lastPlanOfLargest(run)->algorithm, "optcc");
  const auto unplanned = runWith([](int) { return Plans{}; });
  EXPECT_EQ(planChanges(unplanned), 0u);
  EXPECT_EQ(lastPlanOfLargest(unplanned), nullptr);
}

TEST(PlanRecordTest, TestsOfThePortsAreInTheRun) {
  const scenario::Scenario scenario = sampleScenario();
  RunRecord record(scenario, {0, scenario.find("hot_repair"), reports::Arm::kFaulted});
  record.started(kRunStart);
  const wire::PortTest told{.at = kRunStart + 30ms,
                            .communicator = 1,
                            .operation = 40,
                            .took = 120ms,
                            .rounds = 2,
                            .lateness = 1.25,
                            .complete = true,
                            .changed = true,
                            .slowPaths = {{.from = 1, .to = 3, .share = 0.5}}};
  record.events(2, {.portTests = {told}});
  const reports::Run run = record.finish({}).run;
  ASSERT_EQ(run.port_tests.size(), 1u);
  const reports::PortTest& test = run.port_tests.front();
  EXPECT_EQ(test.at_ms, 30);
  EXPECT_EQ(test.communicator, 1u);
  EXPECT_EQ(test.operation, 40u);
  EXPECT_EQ(test.ms, 120);
  EXPECT_EQ(test.rounds, 2);
  EXPECT_EQ(test.lateness, 1.25);
  EXPECT_TRUE(test.complete);
  EXPECT_TRUE(test.changed);
  ASSERT_EQ(test.slow_paths.size(), 1u);
  EXPECT_EQ(test.slow_paths[0].from, 1);
  EXPECT_EQ(test.slow_paths[0].to, 3);
  EXPECT_EQ(test.slow_paths[0].share, 0.5);
}

}  // namespace
}  // namespace faultline::run

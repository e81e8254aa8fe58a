#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "reports/result_json.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/run_program.h"

// Training that follows from a model, from the scenario to the result.

namespace faultline::run {
namespace {

/// All kinds of groups at once: tensor ranks on one node, then experts, then stages.
constexpr const char* kMixed = R"(version: 1
name: mixed
cluster: {kind: netns, nodes: 2, ranks_per_node: 4, rails: 2, rail_rate: 400Mbit}
workload:
  kind: training
  iterations: 6
  warmup_iterations: 2
  model: {layers: 8, hidden: 512, heads: 8, vocabulary: 5000, sequence: 256, experts: 4, active_experts: 2, dtype: f32}
  device: {gflops: 200}
  parallel: {tensor: 2, pipeline: 2, expert: 2, zero: 1}
  micro_batches: 3
  scale: 10
strategies: [fault_free, {fail_stop: {watchdog: 200ms, checkpoint_every: 2}}, hot_repair]
faults:
  - {kind: port_down, target: {node: 1, rail: 0}, during: {iteration: 3, progress: 50%}, duration: 400ms}
limits: {deadline: 30s, give_up: 5s}
seed: 7
expect:
  - wrong_elements == 0
  - fail_stop.restarts.count == 1
  - hot_repair.failovers.count >= 1
)";

TEST(TrainingRunTest, AMixOfAllGroupsSurvivesAPortAndARestart) {
  const testing::TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const auto ran = testing::runFaultline({"run", folder.write("mixed.yaml", kMixed), "--out", out});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const auto result = reports::readResult(out);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(result->training);
  EXPECT_EQ(result->training->scale, 10);
  std::set<std::string> derived;
  for (const reports::TrainingPhase& phase : result->training->phases) {
    derived.insert(phase.phase);
    EXPECT_GT(phase.bytes, 0);
    EXPECT_GE(phase.real_bytes, 9 * phase.bytes) << phase.phase;
  }
  EXPECT_EQ(derived,
            (std::set<std::string>{"parameters", "tensor_forward", "tensor_backward",
                                   "expert_forward", "expert_backward", "activations",
                                   "activation_gradients", "gradients", "embedding_gradients"}));
  ASSERT_EQ(result->runs.size(), 3u);
  for (const reports::Run& run : result->runs) {
    SCOPED_TRACE(run.strategy);
    EXPECT_GT(run.checked_elements, 0);
    // What was lost and done again is no measure of what a phase exposes.
    EXPECT_EQ(run.exposed.empty(), !run.restarts.empty());
    for (const reports::ExposedPhase& phase : run.exposed) {
      EXPECT_TRUE(derived.contains(phase.phase)) << phase.phase;
    }
  }
  for (const reports::Summary& row : result->summary) {
    EXPECT_FALSE(row.bound_pct);
    if (row.strategy != "fault_free") {
      EXPECT_NE(row.note.find("plain data parallelism"), std::string::npos) << row.note;
    }
  }
}

}  // namespace
}  // namespace faultline::run

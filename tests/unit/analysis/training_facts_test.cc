#include "harness/analysis/training_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/exposed_times.h"
#include "harness/scenario/reader.h"

namespace faultline::run {
namespace {

scenario::Scenario trainingScenario(const std::string& parallel) {
  scenario::ReadResult read = scenario::readScenario(
      "version: 1\nname: s\ncluster: {nodes: 4}\n"
      "workload: {kind: training, model: gpt3-2.7b, device: a100, scale: 1000, micro_batches: 2, "
      "parallel: {" +
          parallel + "}}\nstrategies: [fault_free]\n",
      "s");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

TEST(TrainingFactsTest, SayWhatFollowedFromTheModel) {
  const auto facts = trainingFacts(trainingScenario("data: 4"));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->model, "gpt3-2.7b");
  EXPECT_EQ(facts->scale, 1000);
  EXPECT_EQ(facts->parameters, facts->parameters_per_rank);
  EXPECT_EQ(facts->tokens_per_iteration, 4 * 2 * 2048);
  EXPECT_NEAR(facts->real_compute_ms, 1000 * facts->compute_ms, 1e-9);
  // FLOPs per token times the tokens of a rank, at half of 312 TFLOP/s.
  EXPECT_NEAR(facts->real_compute_ms, facts->flops_per_token * 2 * 2048 / 156e9, 0.01);
  EXPECT_DOUBLE_EQ(facts->states_bytes, 16.0 * static_cast<double>(facts->parameters));
  ASSERT_EQ(facts->phases.size(), 1u);
  EXPECT_EQ(facts->phases[0].phase, "gradients");
  EXPECT_EQ(facts->phases[0].operation, "all_reduce");
  EXPECT_EQ(facts->phases[0].ranks, 4);
  EXPECT_EQ(facts->phases[0].calls, 4);
  EXPECT_EQ(facts->phases[0].real_bytes, 2 * facts->parameters);
  EXPECT_NEAR(facts->phases[0].bytes, 2. * facts->parameters / 1000, 8);
}

TEST(TrainingFactsTest, PhasesAreThoseOfTheBusiestStage) {
  const auto facts = trainingFacts(trainingScenario("pipeline: 4"));
  std::vector<std::string> phases;
  for (const reports::TrainingPhase& phase : facts->phases) phases.push_back(phase.phase);
  EXPECT_THAT(phases,
              ::testing::ElementsAre("activations", "activation_gradients", "embedding_gradients"));
  EXPECT_EQ(facts->phases[0].operation, "send_receive");
  EXPECT_EQ(facts->phases[0].calls, 4) << "in the middle two come and two go";
  EXPECT_EQ(facts->phases[2].ranks, 2);
}

TEST(TrainingFactsTest, WithoutAModelThereAreNone) {
  auto scenario = trainingScenario("data: 4");
  scenario.workload.model.reset();
  EXPECT_FALSE(trainingFacts(scenario));
}

TEST(TrainingFactsTest, AServerSaysItsScale) {
  const auto said = [](const std::string& scale) {
    scenario::ReadResult read = scenario::readScenario(
        "version: 1\nname: s\ncluster: {nodes: 2}\n"
        "workload: {kind: inference, model: llama3.1-8b, device: a100, parallel: {tensor: 2}" +
            scale + "}\nstrategies: [fault_free]\n",
        "s");
    if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
    return scaleOfServer(*read.scenario);
  };
  EXPECT_THAT(said(", scale: 1000"), ::testing::StartsWith("scale 1000: all times and bytes"));
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(scaleOfServer(trainingScenario("data: 4")), "") << "its facts say it";
}

TEST(ExposedTimesTest, AreMeansOfRanksAndIterations) {
  ExposedTimes times;
  EXPECT_TRUE(times.rows().empty());
  times.ended({.took = 100ms, .exposed = {{"gradients", 20ms}, {"activations", 5ms}}});
  times.ended({.took = 60ms, .exposed = {{"gradients", 12ms}}});
  const auto rows = times.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].phase, "activations");
  EXPECT_DOUBLE_EQ(rows[0].ms, 2.5);
  EXPECT_EQ(rows[1].phase, "gradients");
  EXPECT_DOUBLE_EQ(rows[1].ms, 16);
  EXPECT_DOUBLE_EQ(rows[1].share_pct, 20);
}

}  // namespace
}  // namespace faultline::run

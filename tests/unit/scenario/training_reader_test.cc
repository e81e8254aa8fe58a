#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "harness/workload/training/section/reader.h"
#include "tests/unit/scenario/expect_mistake.h"

namespace faultline::scenario {
namespace {

using ::testing::ElementsAre;

/// `keys` begin in line 7.
std::string training(const std::string& keys, const std::string& strategies = "[fault_free]") {
  return "version: 1\nname: n\ncluster: {nodes: 4}\nworkload:\n  kind: training\n  iterations: "
         "2\n" +
         keys + "strategies: " + strategies + "\n";
}

Workload workloadOf(const std::string& keys) {
  const ReadResult result = readScenario(training(keys), "f");
  for (const Mistake& mistake : result.mistakes) ADD_FAILURE() << mistake.toString();
  return result.ok() ? result.scenario->workload : Workload{};
}

const std::string kSmall =
    "  model: gpt3-2.7b\n  device: a100\n  parallel: {data: 4}\n  scale: 10\n";  // lines 7 to 10

TEST(TrainingReaderTest, PresetsAreTakenWithTheirDefaults) {
  const Workload workload = workloadOf(kSmall);
  ASSERT_TRUE(workload.model);
  EXPECT_EQ(workload.model->model, *model::findModel("gpt3-2.7b"));
  EXPECT_EQ(workload.model->device, *model::findDevice("a100"));
  EXPECT_EQ(workload.model->parallel, (model::Parallel{.data = 4}));
  EXPECT_EQ(workload.model->sequence, 2048);
  EXPECT_EQ(workload.model->microBatches, 1);
  EXPECT_EQ(workload.model->microBatch, 1);
  EXPECT_EQ(workload.model->scale, 10);
  EXPECT_EQ(workload.model->buckets, 4);
}

TEST(TrainingReaderTest, ComputeAndGradientFollow) {
  const Workload workload = workloadOf(kSmall);
  EXPECT_EQ(workload.compute.duration, model::computeTime(*workload.model));
  EXPECT_EQ(workload.gradient.dtype, DataType::kF16);
  const std::int64_t parameters = model::countParameters(workload.model->model).total;
  EXPECT_EQ(workload.gradient.size, (parameters + 9) / 10 * 2);
}

TEST(TrainingReaderTest, CardsAreReadToTheLastKey) {
  const Workload workload = workloadOf(
      "  model: {family: llama, layers: 8, hidden: 64, heads: 16, kv_heads: 4, ffn: 192,\n"
      "    vocabulary: 1000, sequence: 128, experts: 4, active_experts: 2, dtype: f32}\n"
      "  device: {gflops: 123, efficiency: 25%, memory: 7GB}\n"
      "  parallel: {data: 1, tensor: 1, pipeline: 2, expert: 2, zero: 0}\n"
      "  micro_batches: 5\n  micro_batch: 3\n  sequence: 256\n  scale: 9\n"
      "  gradient: {buckets: 2, data: random}\n");
  const model::Training& read = *workload.model;
  EXPECT_EQ(read.model, (model::ModelCard{.name = "custom",
                                          .family = model::Family::kLlama,
                                          .layers = 8,
                                          .hidden = 64,
                                          .heads = 16,
                                          .kvHeads = 4,
                                          .ffn = 192,
                                          .vocabulary = 1000,
                                          .sequence = 128,
                                          .experts = 4,
                                          .activeExperts = 2,
                                          .dtype = DataType::kF32}));
  EXPECT_EQ(read.device, (model::DeviceCard{"custom", 123, 0.25, 7'000'000'000}));
  EXPECT_EQ(read.parallel, (model::Parallel{.pipeline = 2, .expert = 2}));
  EXPECT_EQ(read.microBatches, 5);
  EXPECT_EQ(read.microBatch, 3);
  EXPECT_EQ(read.sequence, 256);
  EXPECT_EQ(read.buckets, 2);
  EXPECT_EQ(read.scale, 9);
  EXPECT_EQ(workload.gradient.data, DataKind::kRandom);
}

TEST(TrainingReaderTest, WhatACardDoesNotSayFollowsFromTheRest) {
  const Workload workload = workloadOf(
      "  model: {layers: 4, hidden: 64, heads: 8, vocabulary: 1000, sequence: 128}\n"
      "  device: {gflops: 10}\n  parallel: {data: 4}\n");
  EXPECT_EQ(workload.model->model.kvHeads, 8);
  EXPECT_EQ(workload.model->model.ffn, 256);
  EXPECT_EQ(workload.model->sequence, 128);
}

TEST(TrainingReaderTest, AResultHasTheWholeCard) {
  const ReadResult result = readScenario(training(kSmall), "f");
  const auto json = toJson(*result.scenario)["workload"];
  EXPECT_EQ(json["model"]["name"], "gpt3-2.7b");
  EXPECT_EQ(json["model"]["layers"], 32);
  EXPECT_EQ(json["device"]["memory"], "80GB");
  EXPECT_EQ(json["parallel"]["data"], 4);
  EXPECT_EQ(json["scale"], 10);
  EXPECT_FALSE(json.contains("compute"));
  const ReadResult again = readScenario(toJson(*result.scenario).dump(), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *result.scenario);
}

TEST(TrainingReaderTest, TheTwoFormsExcludeEachOther) {
  expectMistake(training(kSmall + "  compute: 5ms\n"), "11:12", "follows from the 'model'");
  expectMistake(training(kSmall + "  gradient: {size: 4MiB}\n"), "11:20", "follows from");
  expectMistake(training(kSmall + "  gradient: {dtype: f32}\n"), "11:21", "follows from");
  for (const std::string key : {"device: a100", "parallel: {data: 4}", "micro_batches: 2",
                                "micro_batch: 2", "sequence: 5", "scale: 2"}) {
    const auto column = std::to_string(key.find(':') + 5);
    expectMistake(training("  " + key + "\n"), "7:" + column, "only with a 'model'");
  }
  expectMistake(
      "version: 1\nname: n\nworkload: {kind: collective, scale: 2}\nstrategies: [fault_free]\n",
      "3:37", "scale: a workload of kind collective has none");
}

TEST(TrainingReaderTest, WrongCardsAreToldAtTheirPlace) {
  expectMistake(training("  model: gpt3-2.7\n  device: a100\n  parallel: {data: 4}\n"), "7:10",
                "did you mean 'gpt3-2.7b'");
  expectMistake(training("  model: gpt3-2.7b\n  parallel: {data: 4}\n"), "7:10",
                "needs the key 'device'");
  expectMistake(training("  model: gpt3-2.7b\n  device: {gflop: 5, gflops: 5}\n  parallel: {data: "
                         "4}\n"),
                "8:12", "unknown key 'gflop'");
  expectMistake(training("  model: {hidden: 64, heads: 8, vocabulary: 10, sequence: 10}\n"
                         "  device: a100\n  parallel: {data: 4}\n"),
                "7:10", "needs the key 'layers'");
  expectMistake(training("  model: [gpt3-2.7b]\n  device: a100\n  parallel: {data: 4}\n"), "7:10",
                "not a list");
}

TEST(TrainingReaderTest, PlansThatCannotBeAreToldAtTheirKey) {
  const std::string cards = "  model: gpt3-2.7b\n  device: a100\n";
  expectMistake(training(cards + "  parallel: {data: 2}\n"), "9:13", "the cluster has 4");
  expectMistake(training(cards), "5:3", "the cluster has 4");
  expectMistake(training(cards + "  parallel: {tensor: 4, zero: 1}\n"), "9:31", "no copies");
  expectMistake(training(cards + "  parallel: {data: 4}\n  sequence: 4096\n"), "10:13",
                "2048 positions");
  expectMistake(training(cards + "  parallel: {data: 4}\n  gradient: {buckets: 40}\n"), "10:23",
                "32 layers");
  expectMistake(training("  model: gpt3-13b\n  device: a100\n  parallel: {data: 4}\n"), "8:11",
                "GB more than the 80.0 GB of a100");
}

TEST(TrainingReaderTest, MessagesThatFillTheMachineNeedAScale) {
  expectMistake(training("  model: llama3.1-8b\n  device: h200\n  parallel: {data: 4, zero: 3}\n"
                         "  sequence: 128\n"),
                "5:3", "a scale of");
  workloadOf(
      "  model: llama3.1-8b\n  device: h200\n  parallel: {data: 4, zero: 3}\n"
      "  sequence: 128\n  scale: 100\n");
}

TEST(TrainingReaderTest, ExposedOverheadsIntervalNeedsBlocks) {
  const std::string strategies =
      "[fault_free, hot_repair]\nrepeat: 5\n"
      "expect: [hot_repair.exposed_overhead_pct.half_width < 1]";
  expectMistake(training(kSmall, strategies), "13:10", "at least 6, not 5");
}

TEST(TrainingReaderTest, OnlyCopiesCanDoWithoutRanks) {
  for (const std::string strategy : {"shrink", "exclude_rank"}) {
    const std::string strategies = "[fault_free, " + strategy + "]";
    EXPECT_THAT(mistakesOf(training(kSmall, strategies)), ElementsAre());
    for (const std::string parallel :
         {"{data: 4, zero: 1}", "{data: 2, tensor: 2}", "{data: 2, pipeline: 2}"}) {
      expectMistake(training("  model: gpt3-2.7b\n  device: a100\n  parallel: " + parallel +
                                 "\n  scale: 10\n",
                             strategies),
                    "11:26", "a part of the model");
    }
  }
}

}  // namespace
}  // namespace faultline::scenario

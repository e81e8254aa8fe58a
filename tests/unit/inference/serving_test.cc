#include "harness/inference/serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::inference {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

model::Training job(std::string_view card, int tensor, int pipeline = 1) {
  model::Training job;
  job.model = *model::findModel(card);
  job.device = *model::findDevice("h100");
  job.parallel = {.tensor = tensor, .pipeline = pipeline};
  return job;
}

// Kwon et al. 2023, section 3: 800 KB for a token of OPT-13B, which has the shape of GPT-3 13B.
TEST(KvTest, IsThePublishedSizeOfOpt13b) {
  const model::ModelCard& card = *model::findModel("gpt3-13b");
  EXPECT_EQ(kvBytes(card) * card.layers, 800 * 1024);
}

// With grouped-query attention 8 of 64 heads are kept: 2 x 80 x 8 x 128 x 2 bytes.
TEST(KvTest, IsSharedByTensorRanksAndStages) {
  const model::ModelCard& card = *model::findModel("llama3.1-70b");
  EXPECT_EQ(kvBytes(card) * card.layers, 327'680);
  EXPECT_EQ(kvElements(job("llama3.1-70b", 1), 10), 10 * 327'680 / 2);
  EXPECT_EQ(kvElements(job("llama3.1-70b", 4), 10), 10 * 327'680 / 2 / 4);
  EXPECT_EQ(kvElements(job("llama3.1-70b", 4, 2), 10), 10 * 327'680 / 2 / 8);
}

TEST(KvTest, HasTheRoomThatWeightsLeave) {
  // 80 GB less 2 x 8.03e9 bytes, at 128 KiB for a token.
  const model::Training one = job("llama3.1-8b", 1);
  EXPECT_EQ(kvTokens(one), (80'000'000'000 - 2 * 8'030'261'248) / 131'072);
  EXPECT_EQ(kvTokens(job("llama3.1-405b", 1)), 0);
}

// Decoding one request reads every weight once: 2 bytes x 8.03e9 less the embedding's 128256 x 4096
// at 3350 GB/s.
TEST(StepTimesTest, DecodeOfOneReadsTheWeights) {
  const model::Training one = job("llama3.1-8b", 1);
  const int contexts[] = {1};
  const StepTimes times = decodeTimes(one, contexts);
  const double weights = 2.0 * (8'030'261'248 - 128'256 * 4096.0);
  EXPECT_NEAR(32 * times.layer + times.head, weights / 3350e9, 1e-3 * weights / 3350e9);
}

TEST(StepTimesTest, DecodeReadsKeysAndValuesBesides) {
  const model::Training one = job("llama3.1-8b", 1);
  const int brief[] = {1, 1, 1, 1};
  const int longer[] = {8001, 8001, 8001, 8001};
  const double more = decodeTimes(one, longer).layer - decodeTimes(one, brief).layer;
  EXPECT_NEAR(more, 4 * 8000 * 4096.0 / 3350e9, 1e-9);  // 2 x 8 heads x 128 x 2 bytes
}

// Prefill of 2000 tokens is bound by operations: tokens x FLOPs / (989 TFLOP/s x 40 %).
TEST(StepTimesTest, PrefillComputes) {
  const model::Training one = job("llama3.1-8b", 1);
  const int prompts[] = {2000};
  const model::TokenFlops flops = model::tokenFlops(one.model, 2000);
  EXPECT_NEAR(32 * prefillTimes(one, prompts).layer, 2000 * flops.layers / (989e12 * 0.4), 1e-9);
  // A short one is bound by reading the weights.
  const int brief[] = {4};
  const int single[] = {1};
  EXPECT_NEAR(prefillTimes(one, brief).layer, decodeTimes(one, single).layer, 1e-8);
}

TEST(StepTimesTest, AreDividedByTensorAndScale) {
  model::Training four = job("llama3.1-70b", 4);
  const int prompts[] = {2000, 500};
  const double whole = prefillTimes(job("llama3.1-70b", 1), prompts).layer;
  EXPECT_NEAR(prefillTimes(four, prompts).layer, whole / 4, 1e-12);
  four.scale = 10;
  EXPECT_NEAR(prefillTimes(four, prompts).layer, whole / 40, 1e-12);
}

// Eight tokens that pass through two of eight experts each may meet all of them; one meets two.
TEST(StepTimesTest, OnlyChosenExpertsAreRead) {
  const model::Training one = job("mixtral-8x7b", 2);
  const int single[] = {1};
  const int many[] = {1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_GT(decodeTimes(one, many).layer, 3.5 * decodeTimes(one, single).layer);
}

TEST(ArrivalsTest, RatesHaveTheirOwnRequestsAndNumbers) {
  const Serving serving{.qps = {2, 4}, .requests = 3};
  const std::vector<Arrivals> rates = arrivalsOf(serving, 7, 0);
  ASSERT_THAT(rates, SizeIs(2));
  EXPECT_EQ(rates[1].qps, 4);
  EXPECT_EQ(rates[0].requests.back().id, 2);
  EXPECT_EQ(rates[1].requests.front().id, 3);
  EXPECT_NE(rates[0].requests[0].arrival, 2 * rates[1].requests[0].arrival);
  EXPECT_EQ(rates, arrivalsOf(serving, 7, 0));
  EXPECT_NE(rates, arrivalsOf(serving, 8, 0));
  EXPECT_NE(rates, arrivalsOf(serving, 7, 1));
  EXPECT_NEAR(toMilliseconds(arrivingTime(rates)),
              1000 * (rates[0].requests[2].arrival + rates[1].requests[2].arrival), 1e-3);
}

std::string keyOf(const Serving& serving, const model::Training& job, int ranks) {
  const auto mistakes = mistakesOf(serving, job, ranks);
  return mistakes.empty() ? "" : mistakes.front().key;
}

TEST(ServingMistakesTest, AreNamed) {
  const Serving serving;
  EXPECT_EQ(keyOf(serving, job("llama3.1-70b", 4), 4), "");
  EXPECT_EQ(keyOf({.disaggregated = true}, job("llama3.1-70b", 4), 8), "");
  EXPECT_EQ(keyOf(serving, job("llama3.1-70b", 4), 8), "parallel");
  EXPECT_EQ(keyOf(serving, job("llama3.1-8b", 1), 1), "parallel");
  EXPECT_EQ(keyOf(serving, job("llama3.1-8b", 1, 5), 5), "parallel.pipeline");
  EXPECT_EQ(keyOf(serving, job("llama3.1-8b", 16), 16), "parallel.tensor");
  model::Training copies = job("llama3.1-8b", 2);
  copies.parallel.data = 2;
  EXPECT_EQ(keyOf(serving, copies, 2), "parallel");
  model::Training blind = job("llama3.1-8b", 2);
  blind.device.memoryBandwidth = 0;
  EXPECT_EQ(keyOf(serving, blind, 2), "device");
  const auto mistakes = mistakesOf(serving, job("llama3.1-405b", 8), 8);
  ASSERT_THAT(mistakes, SizeIs(1));
  EXPECT_THAT(mistakes[0].message, HasSubstr("room for keys and values of 0 tokens"));
}

}  // namespace
}  // namespace faultline::inference

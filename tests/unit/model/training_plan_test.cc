#include "harness/model/training_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/model/some_training.h"

namespace faultline::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlaceTest, RanksAndPlacesAreTheSame) {
  const Parallel parallel{.data = 3, .tensor = 2, .pipeline = 4, .expert = 5};
  for (int rank = 0; rank < parallel.ranks(); ++rank) {
    EXPECT_EQ(rankAt(parallel, placeOf(parallel, rank)), rank);
  }
  EXPECT_EQ(placeOf(parallel, 0), (Place{}));
  EXPECT_EQ(placeOf(parallel, 119), (Place{.tensor = 1, .expert = 4, .data = 2, .stage = 3}));
}

TEST(PlaceTest, GroupsAreThoseThatDifferInOneThing) {
  const Training training = someTraining({.data = 2, .tensor = 2, .pipeline = 2, .expert = 2});
  // rank = tensor + 2 expert + 4 data + 8 stage
  EXPECT_THAT(membersOf(training, Group::kTensor, 5), ElementsAre(4, 5));
  EXPECT_THAT(membersOf(training, Group::kExpert, 5), ElementsAre(5, 7));
  EXPECT_THAT(membersOf(training, Group::kExpertCopies, 5), ElementsAre(1, 5));
  EXPECT_THAT(membersOf(training, Group::kCopies, 5), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(membersOf(training, Group::kPipeline, 5), ElementsAre(5, 13));
}

TEST(PlaceTest, OnlyTheFirstAndTheLastStageHaveTheEmbedding) {
  const Training training = someTraining({.pipeline = 4});
  EXPECT_THAT(membersOf(training, Group::kEmbedding, 0), ElementsAre(0, 3));
  EXPECT_THAT(membersOf(training, Group::kEmbedding, 3), ElementsAre(0, 3));
}

TEST(StageParametersTest, StagesTogetherHaveTheModel) {
  for (const std::string_view name : {"gpt3-2.7b", "llama3.1-8b", "mixtral-8x7b"}) {
    Training training = someTraining({.pipeline = 4});
    training.model = *findModel(name);
    std::int64_t sum = 0, copied = 0;
    for (int stage = 0; stage < 4; ++stage) {
      sum += stageParameters(training, stage).total();
      copied = std::max(copied, stageParameters(training, stage).tiedEmbedding);
    }
    EXPECT_EQ(sum - copied, countParameters(training.model).total) << name;
    EXPECT_EQ(copied > 0, name == "gpt3-2.7b") << "GPT's last stage has a copy of the embedding";
  }
}

TEST(StageParametersTest, TensorAndExpertRanksShareThem) {
  Training training = someTraining({.tensor = 2});
  const std::int64_t whole = countParameters(training.model).total;
  EXPECT_EQ(stageParameters(training, 0).total(), (whole + 1) / 2);

  training = someTraining({.expert = 4});
  training.model = *findModel("mixtral-8x7b");
  const ParameterCounts counts = countParameters(training.model);
  const std::int64_t experts = training.model.layers * training.model.experts * counts.expert;
  EXPECT_EQ(stageParameters(training, 0).expert, experts / 4);
  EXPECT_EQ(stageParameters(training, 0).dense, counts.total - experts);
}

TEST(MemoryTest, AdamTakesSixteenBytesAParameterAndZeroSharesThem) {
  Training training = someTraining({.data = 8});
  const auto parameters = static_cast<double>(countParameters(training.model).total);
  const auto perParameter = [&](int zero) {
    training.parallel.zero = zero;
    return memoryOf(training, 0).states / parameters;
  };
  // Rajbhandari et al. 2020, figure 1: 2 + 2 + 12 bytes.
  EXPECT_DOUBLE_EQ(perParameter(0), 16);
  EXPECT_DOUBLE_EQ(perParameter(1), 4 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(perParameter(2), 2 + 14.0 / 8);
  EXPECT_DOUBLE_EQ(perParameter(3), 16.0 / 8);
}

TEST(MemoryTest, ActivationsAreThoseOfTheMicroBatchesUnderWay) {
  Training training = someTraining({.pipeline = 4});
  training.microBatches = 8;
  const ModelCard& card = training.model;
  // Korthikanti et al. 2022: s b h (10 + 24 / t) a layer, for GPT's ffn of 4 h.
  const double layer = 34.0 * card.hidden * training.sequence * training.microBatch;
  EXPECT_DOUBLE_EQ(memoryOf(training, 0).activations, layer * card.layers / 4 * 4);
  EXPECT_DOUBLE_EQ(memoryOf(training, 3).activations, layer * card.layers / 4);
  EXPECT_DOUBLE_EQ(largestMemory(training).total(), memoryOf(training, 0).total());
  training.microBatches = 2;
  EXPECT_DOUBLE_EQ(memoryOf(training, 0).activations, layer * card.layers / 4 * 2);
}

TEST(ComputeTimeTest, IsFlopsOverSpeedOverScale) {
  Training training = someTraining({.data = 2});
  training.microBatches = 3;
  training.microBatch = 2;
  const TokenFlops flops = tokenFlops(training.model, training.sequence);
  const double expected = 3.0 * flops.forward() * 3 * 2 * training.sequence / 156e12;
  EXPECT_NEAR(toSeconds(computeTime(training)), expected, 1e-9);
  training.scale = 50;
  EXPECT_NEAR(toSeconds(computeTime(training)), expected / 50, 1e-9);
  training.parallel = {.tensor = 2};
  EXPECT_NEAR(toSeconds(computeTime(training)), expected / 100, 1e-9);
}

TEST(ComputeTimeTest, BucketsAreReadyInTheLastBackwardPass) {
  Training training = someTraining({.data = 2});
  training.model.vocabulary = 1;  // the head costs next to nothing
  EXPECT_NEAR(readyFrom(training), 1.0 / 3, 1e-3);
  training.microBatches = 4;
  EXPECT_NEAR(readyFrom(training), 1 - 2.0 / 3 / 4, 1e-3);
}

std::vector<std::string> keysOf(const Training& training, int ranks) {
  std::vector<std::string> keys;
  for (const PlanMistake& mistake : mistakesOf(training, ranks)) keys.push_back(mistake.key);
  return keys;
}

TEST(PlanMistakesTest, APlanThatCanBeHasNone) {
  for (int zero = 0; zero <= 3; ++zero) {
    EXPECT_THAT(mistakesOf(someTraining({.data = 4, .zero = zero}), 4), IsEmpty());
  }
}

TEST(PlanMistakesTest, EachIsToldWithItsKey) {
  EXPECT_THAT(keysOf(someTraining({.data = 3}), 4), ElementsAre("parallel"));
  EXPECT_THAT(keysOf(someTraining({.pipeline = 5}), 5), ElementsAre("parallel.pipeline"));
  EXPECT_THAT(keysOf(someTraining({.tensor = 5}), 5), ElementsAre("parallel.tensor"));
  EXPECT_THAT(keysOf(someTraining({.expert = 2}), 2), ElementsAre("parallel.expert"));
  EXPECT_THAT(keysOf(someTraining({.tensor = 2, .zero = 1}), 2), ElementsAre("parallel.zero"));
  EXPECT_THAT(keysOf(someTraining({.data = 2, .pipeline = 2, .zero = 2}), 4),
              ElementsAre("parallel.zero"));
  EXPECT_THAT(keysOf(someTraining({.data = 2, .pipeline = 2, .zero = 1}), 4), IsEmpty());
  Training training = someTraining({.data = 2});
  training.buckets = 33;
  EXPECT_THAT(keysOf(training, 2), ElementsAre("gradient.buckets"));
  training = someTraining({.data = 2});
  training.sequence = 4096;
  EXPECT_THAT(keysOf(training, 2), ElementsAre("sequence"));
  training = someTraining({.data = 2});
  training.model.heads = training.model.kvHeads = 7;
  EXPECT_THAT(keysOf(training, 2), ElementsAre("model"));
  training = someTraining({.data = 2});
  training.model.activeExperts = 2;
  EXPECT_THAT(keysOf(training, 2), ElementsAre("model"));
}

TEST(PlanMistakesTest, WhatDoesNotFitIsToldByHowMuch) {
  Training training = someTraining({.data = 4});
  training.model = *findModel("gpt3-13b");
  const std::vector<PlanMistake> mistakes = mistakesOf(training, 4);
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_EQ(mistakes[0].key, "device");
  // 12.85e9 x 16 bytes; 34 x 5120 x 2048 x 40 bytes of activations.
  EXPECT_THAT(mistakes[0].message, HasSubstr("needs 219.9 GB (205.7 GB"));
  EXPECT_THAT(mistakes[0].message, HasSubstr("139.9 GB more than the 80.0 GB of a100"));
  training.parallel.zero = 3;
  EXPECT_THAT(mistakesOf(training, 4), IsEmpty());
}

}  // namespace
}  // namespace faultline::model

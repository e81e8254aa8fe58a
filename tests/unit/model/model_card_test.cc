#include "harness/model/model_card.h"

#include <gtest/gtest.h>

#include "harness/model/device_card.h"

namespace faultline::model {
namespace {

std::int64_t total(std::string_view name) { return countParameters(*findModel(name)).total; }

// What the publishers count: Llama and Mixtral to the last parameter (their published weights), of
// GPT-3 only the rounded name.
TEST(ModelCardTest, PresetsHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(total("llama3.1-8b"), 8'030'261'248);
  EXPECT_EQ(total("llama3.1-70b"), 70'553'706'496);
  EXPECT_EQ(total("llama3.1-405b"), 405'853'388'800);
  EXPECT_EQ(total("mixtral-8x7b"), 46'702'792'704);
  EXPECT_NEAR(total("gpt3-2.7b"), 2.65e9, 0.01e9);
  EXPECT_NEAR(total("gpt3-13b"), 12.85e9, 0.01e9);
  EXPECT_NEAR(total("gpt3-175b"), 174.6e9, 0.1e9);
}

TEST(ModelCardTest, OfExpertsATokenMeetsOnlyTheActiveOnes) {
  EXPECT_NEAR(countParameters(*findModel("mixtral-8x7b")).active, 12.9e9, 0.05e9);  // published
  const ParameterCounts dense = countParameters(*findModel("gpt3-13b"));
  EXPECT_EQ(dense.active, dense.total);
}

/// Narayanan et al. 2021, equation 2.
double megatronParameters(const ModelCard& card) {
  const double l = card.layers, h = card.hidden, v = card.vocabulary, s = card.sequence;
  return 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h));
}

/// Their formula without recomputation: 72 B s l h^2 (1 + s / (6 h) + V / (12 l h)), of one token.
double megatronFlops(const ModelCard& card) {
  const double l = card.layers, h = card.hidden, v = card.vocabulary, s = card.sequence;
  return 72 * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
}

TEST(ModelCardTest, GptAgreesWithMegatronsFormulas) {
  for (const std::string_view name : {"gpt3-2.7b", "gpt3-13b", "gpt3-175b"}) {
    const ModelCard& card = *findModel(name);
    // The formula leaves the final norm out.
    EXPECT_NEAR(static_cast<double>(total(name)), megatronParameters(card) + 2 * card.hidden, 1);
    const TokenFlops flops = tokenFlops(card, card.sequence);
    EXPECT_NEAR((flops.forward() + flops.backward()) / megatronFlops(card), 1, 1e-12);
  }
}

TEST(ModelCardTest, ShorterSequencesCostLessAttentionAndNothingElse) {
  const ModelCard& card = *findModel("llama3.1-8b");
  const TokenFlops whole = tokenFlops(card, 8192);
  const TokenFlops half = tokenFlops(card, 4096);
  EXPECT_DOUBLE_EQ(whole.attention - half.attention, 4.0 * 4096 * card.hidden);
  EXPECT_EQ(whole.feedForward, half.feedForward);
  EXPECT_EQ(whole.head, half.head);
}

TEST(ModelCardTest, NamesFindTheirCards) {
  ASSERT_EQ(modelNames().size(), models().size());
  for (const std::string_view name : modelNames()) EXPECT_EQ(findModel(name)->name, name);
  EXPECT_EQ(findModel("gpt4"), nullptr);
  ASSERT_EQ(deviceNames().size(), devices().size());
  for (const std::string_view name : deviceNames()) EXPECT_EQ(findDevice(name)->name, name);
  EXPECT_EQ(findDevice("abacus"), nullptr);
}

TEST(DeviceCardTest, TrainingReachesAShareOfThePeak) {
  EXPECT_DOUBLE_EQ(findDevice("a100")->flopsPerSecond(), 156e12);
}

}  // namespace
}  // namespace faultline::model

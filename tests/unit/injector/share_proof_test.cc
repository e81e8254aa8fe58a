#include "injector/faults/share_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;

TEST(ShareProofTest, AShareFitsWhatItMakesLikelyAndNoOther) {
  const int sent = probesForShare(0.3);
  EXPECT_TRUE(fitsShare(0.3, sent, static_cast<int>(0.3 * sent)));
  EXPECT_FALSE(fitsShare(0.3, sent, 0));
  EXPECT_FALSE(fitsShare(0.3, sent, sent / 2));
  EXPECT_FALSE(fitsShare(0.5, sent, static_cast<int>(0.33 * sent)));
}

TEST(ShareProofTest, OfASmallShareTwentyProbesAreToBeStruck) {
  EXPECT_GE(probesForShare(0.01) * 0.01, 20);
  EXPECT_TRUE(fitsShare(0.01, probesForShare(0.01), 20));
  EXPECT_FALSE(fitsShare(0.01, probesForShare(0.01), 5)) << "less than a third of it";
}

TEST(ShareProofTest, ASmallShareIsToldFromAFewPercent) {
  for (const double share : {0.001, 0.003, 0.01}) {
    const int probes = probesForShare(share);
    EXPECT_TRUE(fitsShare(share, probes, static_cast<int>(share * probes))) << share;
    EXPECT_FALSE(fitsShare(share, probes, static_cast<int>(3 * share * probes))) << share;
    EXPECT_FALSE(fitsShare(share, probes, static_cast<int>(0.03 * probes))) << share;
  }
}

TEST(ShareProofTest, WhatElseStrikesOrSavesProbesIsTheCallersTolerance) {
  EXPECT_FALSE(fitsShare(0.01, 2000, 100));
  EXPECT_TRUE(fitsShare(0.01, 2000, 100, {.more = kQueueShare}));
  EXPECT_FALSE(fitsShare(0.01, 2000, 200, {.more = kQueueShare}));
  EXPECT_FALSE(fitsShare(1, 1000, 960));
  EXPECT_TRUE(fitsShare(1, 1000, 960, {.fewer = kQueueShare}));
  EXPECT_FALSE(fitsShare(1, 1000, 940, {.fewer = kQueueShare}));
  EXPECT_FALSE(fitsShare(1, 1000, 1001, {.fewer = kQueueShare}));
}

TEST(ShareProofTest, WhatIsUnsureIsTheToleranceBothWaysAndOfTooMuchNothingIsSaid) {
  EXPECT_FALSE(fitsUnsureShare(0.3, 1000, 460, 0));
  EXPECT_TRUE(fitsUnsureShare(0.3, 1000, 460, 150));
  EXPECT_TRUE(fitsUnsureShare(0.3, 1000, 120, 150));
  EXPECT_FALSE(fitsUnsureShare(0.3, 1000, 300, 151)) << "half of it";
  EXPECT_TRUE(fitsUnsureShare(0.75, 1000, 750, 250));
  EXPECT_FALSE(fitsUnsureShare(0.75, 1000, 750, 251)) << "a quarter of the probes";
  EXPECT_TRUE(fitsUnsureShare(0.01, 2000, 20, 10));
  EXPECT_FALSE(fitsUnsureShare(0.01, 2000, 20, 11));
  EXPECT_FALSE(fitsUnsureShare(0.5, 0, 0, 0));
}

TEST(ShareProofTest, WithoutProbesNothingIsProved) {
  for (const double share : {0.0, 0.5, 1.0}) EXPECT_FALSE(fitsShare(share, 0, 0)) << share;
}

TEST(ShareProofTest, NoneAndAllAreExact) {
  EXPECT_TRUE(fitsShare(1, 8, 8));
  EXPECT_FALSE(fitsShare(1, 8, 7));
  EXPECT_TRUE(fitsShare(0, 8, 1)) << "a queue on the way may take some";
  EXPECT_FALSE(fitsShare(0, 8, 8));
}

TEST(ShareProofTest, WordsHaveTheInterval) {
  const std::string words = shareInWords("lost", 0.3, 1024, 307);
  EXPECT_THAT(words, HasSubstr("30 % lost (27.3 to 32.9 % with 95 % certainty; asked: 30 %)"));
}

}  // namespace
}  // namespace faultline::injector

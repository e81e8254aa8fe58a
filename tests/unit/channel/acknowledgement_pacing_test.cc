#include "resilient_ccl/channel/acknowledgement_pacing.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

using Chunk = AcknowledgementPacing::Chunk;

class AcknowledgementPacingTest : public ::testing::Test {
 protected:
  AcknowledgementPacing pacing_{2};
  TimePoint time_{1h};
};

TEST_F(AcknowledgementPacingTest, WhereNothingHasComeThereIsNothingToSay) {
  EXPECT_EQ(pacing_.due(), TimePoint::max());
}

TEST_F(AcknowledgementPacingTest, ChunksOfARailGoInPairs) {
  for (const Chunk what : {Chunk::kUsual, Chunk::kLate}) {
    pacing_.sent();
    pacing_.chunk(0, what, time_);
    pacing_.chunk(1, what, time_);
    EXPECT_GT(pacing_.due(), time_) << "one of each rail";
    pacing_.chunk(1, what, time_);
    EXPECT_LE(pacing_.due(), time_);
  }
}

TEST_F(AcknowledgementPacingTest, OneAloneWaitsAsLongAsItsSenderCan) {
  pacing_.chunk(0, Chunk::kUsual, time_);
  EXPECT_EQ(pacing_.due(), time_ + AcknowledgementPacing::kDelay);
  pacing_.chunk(1, Chunk::kLate, time_ + 1us);
  EXPECT_EQ(pacing_.due(), time_ + 1us + AcknowledgementPacing::kLateDelay);
  pacing_.sent();
  EXPECT_EQ(pacing_.due(), TimePoint::max());
  pacing_.chunk(0, Chunk::kLate, time_);
  pacing_.chunk(1, Chunk::kUsual, time_ + 1us);
  EXPECT_EQ(pacing_.due(), time_ + AcknowledgementPacing::kLateDelay) << "the first one decides";
}

TEST_F(AcknowledgementPacingTest, ManySmallOnesAreAsOne) {
  constexpr int kMany =
      AcknowledgementPacing::kChunksTogether * AcknowledgementPacing::kSmallPerChunk;
  for (int i = 1; i < kMany; ++i) pacing_.chunk(0, Chunk::kSmall, time_);
  EXPECT_EQ(pacing_.due(), time_ + AcknowledgementPacing::kDelay);
  pacing_.chunk(0, Chunk::kSmall, time_);
  EXPECT_LE(pacing_.due(), time_);
  pacing_.sent();
  pacing_.chunk(0, Chunk::kSmall, time_);
  EXPECT_GT(pacing_.due(), time_) << "counted anew";
}

TEST_F(AcknowledgementPacingTest, GrantsGoTogether) {
  for (int i = 1; i < AcknowledgementPacing::kGrantsTogether; ++i) pacing_.grants(time_);
  EXPECT_EQ(pacing_.due(), time_ + AcknowledgementPacing::kDelay);
  pacing_.grants(time_);
  EXPECT_LE(pacing_.due(), time_);
  pacing_.sent();
  pacing_.grants(time_);
  EXPECT_GT(pacing_.due(), time_) << "counted anew";
}

TEST_F(AcknowledgementPacingTest, WhatMustGoAtOnceIsNotDelayedByOthers) {
  pacing_.atOnce();
  pacing_.chunk(0, Chunk::kUsual, time_);
  pacing_.grants(time_);
  EXPECT_LE(pacing_.due(), time_);
}

}  // namespace
}  // namespace faultline::channel

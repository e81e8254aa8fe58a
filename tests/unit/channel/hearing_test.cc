#include "resilient_ccl/channel/hearing.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

TEST(HearingTest, ThreeRoundsThatCameElsewhereMakeAPathSilent) {
  Hearing hearing;
  for (std::uint32_t round = 1; round <= 10; ++round) {
    hearing.note(0, round);
    if (round <= 7) hearing.note(1, round);
    EXPECT_EQ(hearing.silent(1), round == 10) << round;
  }
  EXPECT_FALSE(hearing.silent(0));
}

TEST(HearingTest, OneLaterRoundEndsTheSilence) {
  Hearing hearing;
  for (std::uint32_t round = 1; round <= 10; ++round) hearing.note(0, round);
  EXPECT_TRUE(hearing.silent(1));
  hearing.note(1, 11);
  EXPECT_FALSE(hearing.silent(1));
}

TEST(HearingTest, SilenceEverywhereIsNobodys) {
  Hearing hearing;
  hearing.note(0, 1);
  hearing.note(1, 1);
  for (int path = 0; path < kMaxPaths; ++path) EXPECT_FALSE(hearing.silent(path));
}

TEST(HearingTest, OnlyRoundsSinceTheBeginningOfATrialCount) {
  Hearing hearing;
  for (std::uint32_t round = 1; round <= 10; ++round) hearing.note(0, round);
  EXPECT_TRUE(hearing.silent(1, 7));
  EXPECT_FALSE(hearing.silent(1, 8));
  EXPECT_FALSE(hearing.silent(1, 10));
  EXPECT_TRUE(hearing.heardSince(0, 9));
  EXPECT_FALSE(hearing.heardSince(0, 10));
  EXPECT_FALSE(hearing.heardSince(1, 0));
}

TEST(HearingTest, RoundsOutOfOrderRepeatedAndFarApartAreSorted) {
  Hearing hearing;
  hearing.note(0, 5);
  hearing.note(0, 3);
  hearing.note(0, 3);
  EXPECT_EQ(hearing.newest, 5u);
  EXPECT_EQ(hearing.paths[0], 0b101u);
  hearing.note(1, 4);
  EXPECT_EQ(hearing.paths[1], 0b10u);
  hearing.note(0, 1000);  // everything else is forgotten
  EXPECT_EQ(hearing.paths[0], 1u);
  EXPECT_EQ(hearing.paths[1], 0u);
  hearing.note(1, 900);  // too old to be remembered
  EXPECT_EQ(hearing.paths[1], 0u);
  hearing.note(0, 1001);
  hearing.note(0, 1002);
  EXPECT_TRUE(hearing.silent(1));
}

}  // namespace
}  // namespace faultline::channel

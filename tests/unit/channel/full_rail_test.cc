#include "resilient_ccl/channel/full_rail.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

constexpr TimePoint kStart{1s};

TEST(FullRailTest, ARateIsToldOfARailThatHasBeenFullForLong) {
  FullRail rail;
  EXPECT_FALSE(rail.observe(true, 100, kStart));
  EXPECT_FALSE(rail.observe(true, 100, kStart + FullRail::kProof - 1us));
  EXPECT_EQ(rail.observe(true, 100, kStart + FullRail::kProof), 100);
}

TEST(FullRailTest, TimeInWhichItWasNotFullCountsAQuarterAgainstIt) {
  const auto turns = [](Duration full, Duration otherwise) {
    FullRail rail;
    TimePoint at = kStart;
    for (int turn = 0; turn < 1000; ++turn) {
      rail.observe(true, 100, at);
      if (rail.observe(true, 100, at += full)) return turn;
      rail.observe(false, 100, at);
      at += otherwise;
    }
    return -1;
  };
  EXPECT_NEAR(turns(1ms, 2ms), 2 * FullRail::kProof / 1ms, 2);
  EXPECT_EQ(turns(1ms, 4ms), -1);
}

TEST(FullRailTest, NothingIsToldWhileItIsNotFull) {
  FullRail rail;
  EXPECT_FALSE(rail.observe(true, 100, kStart));
  EXPECT_FALSE(rail.observe(false, 100, kStart + 1s)) << "what it carries now says nothing";
  EXPECT_EQ(rail.observe(true, 200, kStart + 2s), std::nullopt) << "not for long";
}

TEST(FullRailTest, TheMostIsTold) {
  FullRail rail;
  TimePoint at = kStart;
  rail.observe(true, 100, at);
  EXPECT_EQ(rail.observe(true, 100, at += FullRail::kProof), 100);
  EXPECT_FALSE(rail.observe(true, 109, at += 1ms)) << "nearly the same";
  EXPECT_EQ(rail.observe(true, 111, at += 1ms), 111);
  EXPECT_FALSE(rail.observe(true, 20, at += 1ms)) << "another one may be in its way";
}

TEST(FullRailTest, ALesserRateIsToldWhenItHasLasted) {
  FullRail rail;
  rail.observe(true, 100, kStart);
  EXPECT_EQ(rail.observe(true, 100, kStart + FullRail::kProof), 100);
  for (Duration after = 100ms; after <= FullRail::kMemory; after += 1ms) {
    EXPECT_FALSE(rail.observe(true, 50, kStart + after));
  }
  std::optional<double> told;
  Duration after = FullRail::kMemory;
  while (!told && after < 1min) told = rail.observe(true, 50, kStart + (after += 1ms));
  EXPECT_EQ(told, 50);
  EXPECT_LE(after, FullRail::kProof + 2 * (FullRail::kMemory + 1ms));
}

}  // namespace
}  // namespace faultline::channel

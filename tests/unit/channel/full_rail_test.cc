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

TEST(FullRailTest, MomentsInWhichItWasNotFullCountAgainstIt) {
  FullRail rail;
  TimePoint at = kStart;
  for (int turn = 0; turn < 1000; ++turn) {
    EXPECT_FALSE(rail.observe(true, 100, at));
    EXPECT_FALSE(rail.observe(false, 100, at += 1ms));
    at += 1ms;
  }
  // Two of three, and it takes three times as long.
  int turns = 0;
  for (bool told = false; !told && turns < 1000; ++turns) {
    rail.observe(true, 100, at);
    told = rail.observe(true, 100, at += 2ms).has_value();
    rail.observe(false, 100, at);
    at += 1ms;
  }
  EXPECT_NEAR(turns, FullRail::kProof / 1ms, 2);
}

TEST(FullRailTest, NothingIsToldWhileItIsNotFull) {
  FullRail rail;
  EXPECT_FALSE(rail.observe(true, 100, kStart));
  EXPECT_FALSE(rail.observe(false, 100, kStart + 1s)) << "what it carries now says nothing";
  EXPECT_EQ(rail.observe(true, 200, kStart + 1s + 1us), std::nullopt) << "not for long";
}

TEST(FullRailTest, OnlyARateThatIsAnotherOneIsToldAgain) {
  FullRail rail;
  TimePoint at = kStart;
  rail.observe(true, 100, at);
  EXPECT_EQ(rail.observe(true, 100, at += FullRail::kProof), 100);
  EXPECT_FALSE(rail.observe(true, 109, at += 1ms));
  EXPECT_FALSE(rail.observe(true, 91, at += 1ms));
  EXPECT_EQ(rail.observe(true, 111, at += 1ms), 111);
  EXPECT_EQ(rail.observe(true, 99, at += 1ms), 99);
}

}  // namespace
}  // namespace faultline::channel

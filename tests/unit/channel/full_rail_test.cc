#include "resilient_ccl/channel/full_rail.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

constexpr TimePoint kStart{1h};

/// A rail that is looked at every millisecond.
class FullRailTest : public ::testing::Test {
 protected:
  /// So long full, or not, at a rate; what was told last, if anything was.
  std::optional<double> pass(Duration time, bool full, double rate = 100) {
    std::optional<double> told;
    for (const TimePoint end = at_ + time; at_ < end;) {
      at_ += 1ms;
      if (const auto word = rail_.observe(full, rate, at_, at_)) told = word;
    }
    return told;
  }

  FullRail rail_;
  TimePoint at_ = kStart;
};

TEST_F(FullRailTest, ARateIsToldOfARailThatHasBeenFullForLong) {
  EXPECT_FALSE(pass(FullRail::kProof, true)) << "the first millisecond does not count";
  EXPECT_EQ(pass(1ms, true), 100);
}

TEST_F(FullRailTest, TimeInWhichItIsNotFullTakesAQuarterOfItBack) {
  const auto told = [this](Duration full, Duration otherwise) {
    rail_ = {};
    for (int turn = 0; turn < 1000; ++turn) {
      if (pass(full, true) || pass(otherwise, false)) return true;
    }
    return false;
  };
  EXPECT_TRUE(told(8ms, 24ms));
  EXPECT_FALSE(told(8ms, 36ms));
}

TEST_F(FullRailTest, NothingIsToldWhileItIsNotFull) {
  pass(FullRail::kProof, true);
  EXPECT_FALSE(pass(5ms, false, 200)) << "what it carries now says nothing";
}

TEST_F(FullRailTest, TheMostIsTold) {
  EXPECT_EQ(pass(2 * FullRail::kProof, true), 100);
  EXPECT_FALSE(pass(5ms, true, 109)) << "nearly the same";
  EXPECT_EQ(pass(5ms, true, 111), 111);
  EXPECT_FALSE(pass(500ms, true, 20)) << "another one may be in its way";
}

TEST_F(FullRailTest, ALesserRateIsToldWhenItHasLasted) {
  EXPECT_EQ(pass(2 * FullRail::kProof, true), 100);
  EXPECT_FALSE(pass(FullRail::kMemory - 2 * FullRail::kProof, true, 50));
  EXPECT_EQ(pass(FullRail::kMemory + 2 * FullRail::kProof, true, 50), 50);
}

TEST_F(FullRailTest, ARateIsForgottenWhenItIsNotProvenAnyMore) {
  EXPECT_EQ(pass(2 * FullRail::kProof, true), 100);
  EXPECT_FALSE(pass(FullRail::kMemory, false));
  EXPECT_EQ(pass(1ms, false), FullRail::kNotKnown);
  EXPECT_FALSE(pass(1min, false)) << "once";
  EXPECT_EQ(pass(2 * FullRail::kProof, true, 30), 30) << "nothing is left of the rate before";
}

TEST_F(FullRailTest, OfALongIdleTimeNothingIsLeftEither) {
  EXPECT_EQ(pass(2 * FullRail::kProof, true), 100);
  pass(1ms, false);
  at_ += 1min;  // nobody looks
  EXPECT_EQ(pass(2ms, true, 30), FullRail::kNotKnown);
  EXPECT_EQ(pass(2 * FullRail::kProof, true, 30), 30);
}

// A peer that does not run for a while: what the rail carried seems to be little.
TEST_F(FullRailTest, TimeInWhichNothingIsAcknowledgedIsNoProof) {
  pass(FullRail::kProof - 10ms, true);
  at_ += 100ms;
  EXPECT_FALSE(pass(FullRail::kProof, true, 1)) << "it was not looked at";
  EXPECT_EQ(pass(2ms, true), 100);

  rail_ = {};
  pass(FullRail::kProof - 10ms, true);
  const TimePoint measured = at_;
  for (int look = 0; look < 100; ++look) {
    EXPECT_FALSE(rail_.observe(true, 1, measured, at_ += 1ms)) << "it was looked at";
  }
  EXPECT_FALSE(pass(FullRail::kProof - 10ms, true));
}

}  // namespace
}  // namespace faultline::channel

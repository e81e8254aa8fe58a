#include "harness/site/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace faultline::site {
namespace {

TimePoint at(double seconds) { return TimePoint(fromSeconds(seconds)); }

TEST(ClockOffsetTest, HalfOfTheWayBoundsTheError) {
  ClockOffset clock;
  EXPECT_FALSE(clock.at(at(1)));
  EXPECT_EQ(clock.ours(at(77), at(3)), at(3)) << "when it was heard is all that is known";
  clock.add(at(10), at(1000), at(10.002));
  const auto known = clock.at(at(10.001));
  ASSERT_TRUE(known);
  EXPECT_EQ(known->offset, at(1000) - at(10.001));
  EXPECT_GE(known->error, 1ms);
  EXPECT_LT(known->error, 1ms + 1us);
  EXPECT_EQ(clock.ours(at(1000), at(20)), at(10.001));
}

TEST(ClockOffsetTest, AShorterAnswerIsBetterAndALongerOneIsForgotten) {
  ClockOffset clock;
  clock.add(at(10), at(1000), at(10.010));
  clock.add(at(11), at(1001), at(11.002));
  EXPECT_EQ(clock.at(at(11.001))->offset, at(1001) - at(11.001));
  clock.add(at(12), at(1002), at(12.100));
  EXPECT_EQ(clock.at(at(12))->offset, at(1001) - at(11.001));
  // After a hundred seconds the drift may have been worse than a long way.
  clock.add(at(112), at(1102), at(112.100));
  EXPECT_EQ(clock.at(at(112))->offset, at(1102) - at(112.050));
}

TEST(ClockOffsetTest, ThatOfThisMachineIsKnownForAllTimes) {
  const ClockOffset clock = ClockOffset::same();
  for (const double seconds : {0.0, 1e6}) {
    ASSERT_TRUE(clock.at(at(seconds)));
    EXPECT_EQ(clock.at(at(seconds))->offset, 0s);
    EXPECT_EQ(clock.at(at(seconds))->error, 0s);
  }
  EXPECT_EQ(clock.ours(at(5), at(6)), at(5));
}

TEST(ClockOffsetTest, NothingIsHeardBeforeItHappens) {
  ClockOffset clock;
  clock.add(at(10), at(1000), at(10.010));
  EXPECT_EQ(clock.ours(at(1000.2), at(10.1)), at(10.1));
}

// Whatever the ways take, and however the clocks drift apart within the bound.
TEST(ClockOffsetTest, TheTruthLiesWithinTheError) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    const double offset = 1e4 * (unit(random) - 0.5);
    const double drift = ClockOffset::kMostDrift * (2 * unit(random) - 1);
    const auto theirs = [&](double ours) { return 1e5 + offset + ours * (1 + drift); };
    ClockOffset clock;
    double now = 1;
    for (int question = 0; question < 50; ++question) {
      now += unit(random);
      const double there = 0.01 * unit(random) * unit(random);
      const double back = 0.01 * unit(random) * unit(random);
      clock.add(at(now), at(theirs(now + there)), at(now + there + back));
      now += there + back + unit(random);
      const auto known = clock.at(at(now));
      const double error = std::abs(toSeconds(known->offset) - (theirs(now) - now));
      EXPECT_LE(error, toSeconds(known->error) + 1e-6) << "seed " << seed;
      EXPECT_LT(toSeconds(known->error), 0.2) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace faultline::site

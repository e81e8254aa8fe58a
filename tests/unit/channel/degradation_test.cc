#include "resilient_ccl/channel/degradation.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

/// Observations of `share` of the others' rate, every `pause`; how many times the state changed.
int observe(Degradation& rail, double share, int count, TimePoint& now, Duration pause = 50ms) {
  int changes = 0;
  for (int i = 0; i < count; ++i) changes += rail.observe(100e6 * share, 100e6, now += pause);
  return changes;
}

TEST(DegradationTest, HalfATenthAndAHundredthOfTheRateAreFoundOnce) {
  for (const double share : {0.5, 0.1, 0.01}) {
    Degradation rail;
    TimePoint now(1s);
    EXPECT_EQ(observe(rail, share, 7, now), 0);
    EXPECT_EQ(observe(rail, share, 100, now), 1) << share;
    EXPECT_TRUE(rail.degraded());
    EXPECT_EQ(observe(rail, 0.75, 100, now), 0);  // neither this nor that
    EXPECT_EQ(observe(rail, 1, 100, now), 1);
    EXPECT_FALSE(rail.degraded());
  }
}

TEST(DegradationTest, AMomentIsNotAState) {
  Degradation rail;
  TimePoint now(1s);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(observe(rail, 0.1, 7, now), 0);
    EXPECT_EQ(observe(rail, 0.9, 1, now), 0);
  }
  EXPECT_EQ(observe(rail, 0.1, 100, now, 1ms), 0);  // many, but in 100 ms
}

}  // namespace
}  // namespace faultline::channel

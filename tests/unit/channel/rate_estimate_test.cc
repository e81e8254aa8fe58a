#include "resilient_ccl/channel/rate_estimate.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

constexpr Bytes kChunk = 64 << 10;

/// Acknowledges chunks as a rail of this rate does, without a pause, for so long.
void carry(RateEstimate& rate, TimePoint& now, double bytesPerSecond, Duration time) {
  for (const TimePoint end = now + time; now < end;) {
    now += fromSeconds(kChunk / bytesPerSecond);
    rate.acknowledged(kChunk, now);
  }
}

TEST(RateEstimateTest, FollowsAnyChangeWithinAFifthOfASecond) {
  TimePoint now(1s);
  RateEstimate rate(50e6);
  rate.begin(now);
  for (const double real : {1e6, 100e6, 1e9, 10e6, 200e6, 0.5e6, 50e6}) {
    carry(rate, now, real, 200ms);
    EXPECT_NEAR(rate.bytesPerSecond(), real, 0.05 * real);
  }
}

TEST(RateEstimateTest, TheFirstGuessIsOutweighedByTheFirstWindow) {
  TimePoint now(1s);
  RateEstimate rate(50e6);
  EXPECT_EQ(rate.bytesPerSecond(), 50e6);
  EXPECT_EQ(rate.measured(), TimePoint{});
  rate.begin(now);
  carry(rate, now, 5e6, 10ms);
  EXPECT_LT(rate.bytesPerSecond(), 10e6);
  EXPECT_EQ(rate.measured(), now);
}

TEST(RateEstimateTest, IdlenessIsNoSlowness) {
  TimePoint now(1s);
  RateEstimate rate(50e6);
  rate.begin(now);
  carry(rate, now, 100e6, 100ms);
  const double before = rate.bytesPerSecond();
  now += 10s;
  rate.begin(now);
  EXPECT_NEAR(rate.bytesPerSecond(), before, 1);
  carry(rate, now, 100e6, 10ms);
  EXPECT_NEAR(rate.bytesPerSecond(), 100e6, 5e6);
}

TEST(RateEstimateTest, SilenceLowersItMoreAndMore) {
  TimePoint now(1s);
  RateEstimate rate(50e6);
  rate.begin(now);
  carry(rate, now, 100e6, 100ms);
  double before = rate.bytesPerSecond();
  EXPECT_EQ(rate.withSilenceUntil(now - 5ms), before) << "heard earlier: no silence";
  for (const Duration silence : {10ms, 50ms, 200ms, 2000ms}) {
    const double lower = rate.withSilenceUntil(now + silence);
    EXPECT_LT(lower, 0.9 * before);
    before = lower;
  }
  EXPECT_GT(rate.withSilenceUntil(now + 1h), 0) << "times are computed from it";
  EXPECT_NEAR(rate.bytesPerSecond(), 100e6, 5e6) << "asking changes nothing";
}

}  // namespace
}  // namespace faultline::channel

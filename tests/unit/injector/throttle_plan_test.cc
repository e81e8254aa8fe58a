#include "injector/faults/throttle_plan.h"

#include <gtest/gtest.h>

#include "injector/faults/rate_meter.h"
#include "injector/faults/still_watch.h"

namespace faultline::injector {
namespace {

constexpr BitsPerSecond kFull = 400'000'000;

TEST(ThrottlePlanTest, PercentIsOfTheRateNow) {
  EXPECT_EQ(planThrottle(kFull, Percent{10})->after, 40'000'000);
  EXPECT_EQ(planThrottle(kFull, Rate{4'000'000})->after, 4'000'000);
  EXPECT_EQ(planThrottle(1'000'000, Percent{0.1})->after, kSlowestRate);
}

TEST(ThrottlePlanTest, NotSlowerIsAMistake) {
  EXPECT_EQ(planThrottle(kFull, Rate{kFull}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(planThrottle(kFull, Percent{100}).status().code(), Code::kInvalidArgument);
}

TEST(ThrottlePlanTest, TheUnthrottledLinkIsNeverTakenForAProof) {
  for (const double percent : {0.1, 1.0, 10.0, 50.0, 80.0, 95.0}) {
    const auto plan = planThrottle(kFull, Percent{percent});
    ASSERT_TRUE(plan.ok());
    EXPECT_LT(plan->highest_proof, kFull) << percent;
    EXPECT_GT(plan->highest_proof, plan->after) << percent;
    EXPECT_LT(plan->lowest_proof, plan->after) << percent;
  }
}

TEST(ThrottlePlanTest, SlowLinksAreProvedWithSmallFramesAndLittleBacklog) {
  const auto plan = planThrottle(kFull, Rate{kSlowestRate});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->probe_frame, 46u);
  EXPECT_LT(plan->window, 1s);
  EXPECT_LE(plan->probe_backlog, 4 * 60);
}

TEST(ThrottlePlanTest, AWindowIsShorterThanItsBacklogUnlessTheRatesAreNear) {
  const auto backlogLasts = [](const ThrottlePlan& plan) {
    constexpr double kBitsPerByte = 8;
    return fromSeconds(static_cast<double>(plan.probe_backlog) * kBitsPerByte /
                       static_cast<double>(plan.after));
  };
  for (const double percent : {1.0, 10.0, 50.0}) {
    const auto plan = planThrottle(kFull, Percent{percent});
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(plan->window, backlogLasts(*plan)) << percent;
  }
  const auto near = planThrottle(kFull, Percent{95});
  const auto nearer = planThrottle(kFull, Percent{99});
  ASSERT_TRUE(near.ok() && nearer.ok());
  EXPECT_GT(near->window, backlogLasts(*near));
  EXPECT_EQ(nearer->window, 50ms);
}

class RateMeterTest : public ::testing::Test {
 protected:
  static constexpr Bytes kBacklog = 1'000'000;
  static TimePoint at(Duration offset) { return TimePoint(1h) + offset; }
  RateMeter meter_{50ms};
};

TEST_F(RateMeterTest, BigSegmentsOnASlowLinkAreMeasuredExactly) {
  // 64 KiB every 131.072 ms are 4 Mbit/s; looked at every millisecond.
  constexpr Duration kBetween = 131'072us;
  for (Duration offset{}; offset < 700ms; offset += 1ms) {
    meter_.observe(at(offset), static_cast<std::uint64_t>(offset / kBetween) * 65'536, kBacklog);
  }
  ASSERT_TRUE(meter_.measured());
  EXPECT_NEAR(static_cast<double>(meter_.measured()->rate), 4e6, 0.05e6);
}

TEST_F(RateMeterTest, AnIdleQueueIsNotMeasured) {
  for (int step = 0; step < 1000; ++step) {
    meter_.observe(at(step * 1ms), static_cast<std::uint64_t>(step) * 1000,
                   step % 20 ? kBacklog : 0);
  }
  EXPECT_FALSE(meter_.measured());
}

TEST_F(RateMeterTest, AStandingQueueIsNotMeasured) {
  for (int step = 0; step < 1000; ++step) meter_.observe(at(step * 1ms), 77, kBacklog);
  EXPECT_FALSE(meter_.measured());
}

TEST(StillWatchTest, TellsSinceWhenNothingMoved) {
  StillWatch watch;
  const TimePoint start(1h);
  EXPECT_EQ(watch.stillFor(), Duration::zero());
  watch.observe(5, start);
  watch.observe(6, start + 10ms);
  watch.observe(6, start + 25ms);
  EXPECT_EQ(watch.stillFor(), 15ms);
  watch.observe(7, start + 30ms);
  EXPECT_EQ(watch.stillFor(), Duration::zero());
}

}  // namespace
}  // namespace faultline::injector

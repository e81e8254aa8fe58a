#include "injector/faults/throttle_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "injector/faults/backlog_meter.h"
#include "injector/faults/rate_meter.h"
#include "injector/faults/still_watch.h"
#include "injector/netlink/shaper_plan.h"

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

TEST(ThrottlePlanTest, AHalfIsToldFromAThird) {
  const auto half = planThrottle(kFull, Rate{kFull / 2});
  const auto third = planThrottle(kFull, Rate{kFull / 3});
  ASSERT_TRUE(half.ok() && third.ok());
  const MeasuredRate of_half{kFull / 2, 60ms};
  const MeasuredRate of_third{kFull / 3, 60ms};
  EXPECT_EQ(proofOf(*half, of_half), ThrottleProof::kAsAsked);
  EXPECT_EQ(proofOf(*third, of_third), ThrottleProof::kAsAsked);
  EXPECT_EQ(proofOf(*half, of_third), ThrottleProof::kSlower);
  EXPECT_EQ(proofOf(*third, of_half), ThrottleProof::kNothing) << "another throttle, or none";
  // No rate is both.
  for (int percent = 1; percent < 100; ++percent) {
    const MeasuredRate rate{kFull / 100 * percent, 60ms};
    EXPECT_FALSE(proofOf(*half, rate) == ThrottleProof::kAsAsked &&
                 proofOf(*third, rate) == ThrottleProof::kAsAsked)
        << percent;
  }
}

TEST(ThrottlePlanTest, NothingIsProvedByTheOldRateOrByAlmostNone) {
  const auto plan = planThrottle(200'000'000, Percent{50});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(proofOf(*plan, std::nullopt), ThrottleProof::kNothing);
  EXPECT_EQ(proofOf(*plan, MeasuredRate{200'000'000, 60ms}), ThrottleProof::kNothing);
  EXPECT_EQ(proofOf(*plan, MeasuredRate{151'000'000, 60ms}), ThrottleProof::kNothing);
  EXPECT_EQ(proofOf(*plan, MeasuredRate{20'000'000, 60ms}), ThrottleProof::kNothing);
}

TEST(ThrottlePlanTest, TheSentenceSaysNoMoreThanWhatWasMeasured) {
  const auto plan = planThrottle(200'000'000, Percent{50});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(inWords(*plan, MeasuredRate{92'000'000, 60ms}),
            "92 Mbit/s left the queue during 60 ms with a backlog (asked: 100Mbit, before: "
            "200Mbit)");
  EXPECT_EQ(inWords(*plan, MeasuredRate{67'628'000, 61ms}),
            "slower than before, and no more is shown: 67.6 Mbit/s left the queue during 61 ms "
            "with a backlog (asked: 100Mbit, before: 200Mbit)");
  EXPECT_EQ(inWords(*plan, MeasuredRate{147'750'000, 60ms}).find("slower than before"), 0u);
  EXPECT_EQ(inWords(*plan, std::nullopt, /*before_known=*/false),
            "never a backlog for 60 ms altogether (asked: 100Mbit, before: not known)");
}

TEST(ThrottlePlanTest, TheWindowIsLongAgainstALateLookAndLongerWhereRatesAreNear) {
  for (const double percent : {1.0, 10.0, 50.0, 80.0}) {
    EXPECT_EQ(planThrottle(kFull, Percent{percent})->window, 60ms) << percent;
  }
  const Duration near = planThrottle(kFull, Percent{95})->window;
  EXPECT_GT(near, 200ms);
  EXPECT_GE(planThrottle(kFull, Percent{99})->window, near);
  EXPECT_LE(planThrottle(kFull, Percent{99})->window, 250ms);
}

/// A token bucket with an endless queue, looked at every `tick`; it sends in pieces of `piece`.
class Bucket {
 public:
  Bucket(double bytes_per_ms, double burst, double piece)
      : rate_(bytes_per_ms), burst_(burst), tokens_(burst), piece_(piece) {}
  /// What it has sent after another millisecond, in which `waiting` bytes at most were there.
  std::uint64_t after1ms(double waiting = 1e12) {
    tokens_ = std::min(burst_, tokens_ + rate_);
    while (tokens_ > 0 && waiting >= piece_) {
      tokens_ -= piece_;
      waiting -= piece_;
      sent_ += static_cast<std::uint64_t>(piece_);
    }
    return sent_;
  }

 private:
  double rate_, burst_, tokens_, piece_;
  std::uint64_t sent_ = 0;
};

struct BucketCase {
  double megabits;
  double piece;
};
class BacklogMeterTest : public ::testing::TestWithParam<BucketCase> {
 protected:
  static TimePoint at(Duration offset) { return TimePoint(1h) + offset; }
};

TEST_P(BacklogMeterTest, TheBurstIsNoRate) {
  const auto [megabits, piece] = GetParam();
  const auto rate = static_cast<BitsPerSecond>(megabits * 1e6);
  const auto plan = planThrottle(2 * rate, Percent{50});
  ASSERT_TRUE(plan.ok());
  BacklogMeter meter = plan->meter();
  Bucket bucket(megabits * 125, static_cast<double>(netlink::planShaper(plan->after).bulk.burst),
                piece);
  for (int ms = 0; ms < 5000 && !meter.measured(); ++ms) {
    meter.observe(at(ms * 1ms), bucket.after1ms(), 1'000'000);
  }
  ASSERT_TRUE(meter.measured());
  EXPECT_EQ(proofOf(*plan, meter.measured()), ThrottleProof::kAsAsked)
      << meter.measured()->rate << " during " << toMilliseconds(meter.measured()->window);
  EXPECT_NEAR(static_cast<double>(meter.measured()->rate), static_cast<double>(rate),
              0.1 * static_cast<double>(rate));
}

INSTANTIATE_TEST_SUITE_P(Rates, BacklogMeterTest,
                         ::testing::Values(BucketCase{1, 1500}, BucketCase{10, 1500},
                                           BucketCase{10, 65536}, BucketCase{100, 1500},
                                           BucketCase{100, 65536}, BucketCase{1000, 65536}));

TEST(BacklogTimesTest, ManyShortTimesOfWaitingAddUp) {
  constexpr BitsPerSecond kRate = 80'000'000;  // 10000 bytes in a millisecond
  const auto plan = planThrottle(2 * kRate, Percent{50});
  ASSERT_TRUE(plan.ok());
  BacklogMeter meter = plan->meter();
  Bucket bucket(10'000, static_cast<double>(netlink::planShaper(plan->after).bulk.burst), 1500);
  RateMeter latest(plan->window);
  int waits = 0;
  for (int ms = 0; ms < 1000 && !meter.measured(); ++ms) {
    const bool waiting = ms % 20 < 12;  // then there is nothing to send for 8 ms
    waits += waiting ? 1 : 0;
    const std::uint64_t sent = bucket.after1ms(waiting ? 1e12 : 0);
    meter.observe(TimePoint(1h) + ms * 1ms, sent, waiting ? 100'000 : 0);
    latest.observe(TimePoint(1h) + ms * 1ms, sent, waiting ? 100'000 : 0);
  }
  EXPECT_FALSE(latest.measured()) << "none of them is long enough";
  ASSERT_TRUE(meter.measured());
  EXPECT_EQ(proofOf(*plan, meter.measured()), ThrottleProof::kAsAsked) << meter.measured()->rate;
  EXPECT_GE(waits, 60);
}

TEST(BacklogTimesTest, AnIdleOrStandingQueueIsNotMeasured) {
  BacklogMeter idle(60ms);
  BacklogMeter standing(60ms);
  for (int ms = 0; ms < 1000; ++ms) {
    idle.observe(TimePoint(1h) + ms * 1ms, static_cast<std::uint64_t>(ms) * 1000, 0);
    standing.observe(TimePoint(1h) + ms * 1ms, 77, 1'000'000);
  }
  EXPECT_FALSE(idle.measured());
  EXPECT_FALSE(standing.measured());
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

#include "resilient_ccl/channel/delivery_trial.h"

#include <gtest/gtest.h>

#include "resilient_ccl/channel/path_traffic.h"

namespace faultline::channel {
namespace {

constexpr TimePoint kTrialBegin{1s};

TEST(DeliveryTrialTest, ItIsQuietWhenNothingMovesForARoundTrip) {
  DeliveryTrial trial;
  trial.begin({.acknowledged = 100, .outstanding = true, .roundTrip = 5ms});
  EXPECT_FALSE(
      trial.look({.acknowledged = 100, .outstanding = true, .roundTrip = 9ms}, kTrialBegin + 4ms));
  EXPECT_TRUE(trial.outstanding());
  EXPECT_FALSE(trial.quiet(/*lastProgress=*/kTrialBegin, kTrialBegin + 5ms));
  EXPECT_TRUE(trial.quiet(kTrialBegin, kTrialBegin + 6ms));
}

TEST(DeliveryTrialTest, WhatMovesBeginsTheRoundTripAnewAndDoesNotMeasureIt) {
  DeliveryTrial trial;
  trial.begin({.acknowledged = 100, .outstanding = true, .roundTrip = 5ms});
  // It was acknowledged after an outage of 80 ms, which the transport takes for a round trip.
  EXPECT_TRUE(trial.look({.acknowledged = 101, .outstanding = true, .roundTrip = 80ms},
                         kTrialBegin + 80ms));
  EXPECT_FALSE(trial.quiet(kTrialBegin, kTrialBegin + 85ms));
  EXPECT_TRUE(trial.quiet(kTrialBegin, kTrialBegin + 86ms));
}

transport::Delivery moved(std::uint64_t acknowledged, Duration roundTrip, Duration variation) {
  return {.acknowledged = acknowledged,
          .outstanding = true,
          .roundTrip = roundTrip,
          .variation = variation};
}

// Of a rail that has become much slower the transport knows that its estimate varies, before it has
// the new round trip.
TEST(DeliveryTrialTest, WhatGoesOnMovingMayTakeAsLongAsTheTransportWouldWait) {
  DeliveryTrial trial;
  trial.begin(moved(100, 5ms, 1ms));
  trial.look(moved(101, 6ms, 3ms), kTrialBegin);
  EXPECT_TRUE(trial.quiet(kTrialBegin, kTrialBegin + 6ms)) << "it may have come in long ago";
  const TimePoint second = kTrialBegin + 20ms;
  trial.look(moved(102, 9ms, 8ms), second);
  // As it was before it moved.
  EXPECT_FALSE(trial.quiet(second, second + 18ms));
  EXPECT_TRUE(trial.quiet(second, second + 19ms));
  trial.begin(moved(102, 5ms, 1ms));
  EXPECT_TRUE(trial.quiet(second, second + 6ms)) << "another trial";
}

// They measure the outage: waiting as long again is what is to be spared.
TEST(DeliveryTrialTest, AcknowledgementsThatAreLateTogetherAreOneMove) {
  DeliveryTrial trial;
  trial.begin(moved(100, 5ms, 1ms));
  trial.look(moved(101, 15ms, 20ms), kTrialBegin + 80ms);
  trial.look(moved(102, 24ms, 35ms), kTrialBegin + 82ms);
  EXPECT_FALSE(trial.quiet(kTrialBegin, kTrialBegin + 97ms));
  EXPECT_TRUE(trial.quiet(kTrialBegin, kTrialBegin + 98ms));
}

TEST(DeliveryTrialTest, NothingIsOutstandingAsTheTransportSays) {
  DeliveryTrial trial;
  trial.begin({.acknowledged = 100, .outstanding = true, .roundTrip = 5ms});
  trial.look({.acknowledged = 200, .outstanding = false, .roundTrip = 5ms}, kTrialBegin);
  EXPECT_FALSE(trial.outstanding());
}

TEST(PathTrafficTest, GapsOfEitherDirectionInterruptUntilTheyAreForgotten) {
  PathTraffic traffic;
  EXPECT_FALSE(traffic.interrupted());
  traffic.gapsThere = 1;
  EXPECT_TRUE(traffic.interrupted());
  traffic.forgetGaps();
  EXPECT_FALSE(traffic.interrupted());
  traffic.arrivals.note(1, kTrialBegin);
  traffic.arrivals.note(10, kTrialBegin);
  // It may still come; when it is forgotten now it is not counted later.
  EXPECT_FALSE(traffic.interrupted());
  traffic.forgetGaps();
  traffic.arrivals.note(11, kTrialBegin + 1s);
  EXPECT_FALSE(traffic.interrupted());
  traffic.arrivals.note(20, kTrialBegin + 1s);
  traffic.arrivals.note(21, kTrialBegin + 2s);
  EXPECT_TRUE(traffic.interrupted());
}

}  // namespace
}  // namespace faultline::channel

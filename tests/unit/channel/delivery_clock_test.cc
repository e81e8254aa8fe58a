#include "resilient_ccl/channel/delivery_clock.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

constexpr TimePoint kBegin{1h};

TEST(DeliveryClockTest, CountsFromTheFirstMessageAndFromEachChunk) {
  DeliveryClock clock;
  EXPECT_EQ(clock.waitingSince(true), std::nullopt);
  clock.begin(kBegin);
  clock.begin(kBegin + 1s);
  EXPECT_EQ(clock.waitingSince(true), kBegin) << "the first waits all the same";
  clock.delivered(kBegin + 2s);
  EXPECT_EQ(clock.waitingSince(true), kBegin + 2s);
  clock.end();
  clock.end();
  EXPECT_EQ(clock.waitingSince(true), std::nullopt);
  clock.begin(kBegin + 9s);
  EXPECT_EQ(clock.waitingSince(true), kBegin + 9s);
}

TEST(DeliveryClockTest, TheTimeWithoutARailDoesNotCountOnce) {
  DeliveryClock clock;
  clock.begin(kBegin);
  EXPECT_EQ(clock.waitingSince(false), std::nullopt);
  clock.returned(/*noRailSince=*/kBegin + 1s, kBegin + 4s);
  EXPECT_EQ(clock.waitingSince(true), kBegin + 3s);
  clock.returned(kBegin + 5s, kBegin + 8s);
  EXPECT_EQ(clock.waitingSince(true), kBegin + 3s) << "it carried nothing";
  EXPECT_EQ(clock.waitingSince(false), kBegin + 3s);
  clock.delivered(kBegin + 9s);
  clock.returned(kBegin + 10s, kBegin + 11s);
  EXPECT_EQ(clock.waitingSince(true), kBegin + 10s) << "something was delivered in between";
}

TEST(DeliveryClockTest, WhatWasThereBeforeTheMessageIsNotItsTime) {
  DeliveryClock clock;
  clock.returned(kBegin, kBegin + 1s);
  clock.begin(kBegin + 2s);
  clock.returned(/*noRailSince=*/kBegin, kBegin + 3s);
  EXPECT_EQ(clock.waitingSince(true), kBegin + 3s);
}

}  // namespace
}  // namespace faultline::channel

#include "harness/site/hosts/payload_count.h"

#include <gtest/gtest.h>

// Whether a job moves or hangs is seen from what rails carry, which is never nothing.

namespace faultline::hosts {
namespace {

const TimePoint kBegin = TimePoint(1h);

/// What is counted when rails receive that for so long, looked at each millisecond.
std::uint64_t countedOf(std::uint64_t bytesPerSecond, Duration time) {
  PayloadCount count;
  std::uint64_t payload = 0;
  for (Duration since{}; since <= time; since += 1ms) {
    payload = count.add(
        kBegin + since,
        1'000'000'000 +
            static_cast<std::uint64_t>(static_cast<double>(bytesPerSecond) * toSeconds(since)));
  }
  return payload;
}

TEST(PayloadCountTest, WhatAJobMovesCounts) {
  constexpr std::uint64_t kPerSecond = 10'000'000;
  EXPECT_EQ(countedOf(kPerSecond, 2s), 2 * kPerSecond);
}

TEST(PayloadCountTest, WhatQuietRailsCarryDoesNot) {
  EXPECT_EQ(countedOf(0, 10s), 0U);
  EXPECT_EQ(countedOf(50'000, 10s), 0U);
}

TEST(PayloadCountTest, NorDoesItAtALateLook) {
  PayloadCount count;
  EXPECT_EQ(count.add(kBegin, 5), 0U);
  EXPECT_EQ(count.add(kBegin + 10s, 500'005), 0U);
  EXPECT_EQ(count.add(kBegin + 20s, 100'500'005), 100'000'000U);
}

TEST(PayloadCountTest, OneBurstCountsOnce) {
  PayloadCount count;
  EXPECT_EQ(count.add(kBegin, 0), 0U);
  EXPECT_EQ(count.add(kBegin + 100ms, 1 << 20), 1U << 20);
  EXPECT_EQ(count.add(kBegin + 101ms, 1 << 20), 1U << 20);
  EXPECT_EQ(count.add(kBegin + 300ms, 1 << 20), 1U << 20);
}

TEST(PayloadCountTest, AnInterfaceThatIsGoneTakesNothingBack) {
  PayloadCount count;
  EXPECT_EQ(count.add(kBegin, 1 << 30), 0U);
  EXPECT_EQ(count.add(kBegin + 1s, 0), 0U);
}

}  // namespace
}  // namespace faultline::hosts

#include "resilient_ccl/channel/arrivals.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace faultline::channel {
namespace {

void note(Arrivals& arrivals, std::initializer_list<std::uint64_t> numbers, Duration when) {
  for (const std::uint64_t number : numbers) arrivals.note(number, TimePoint{} + 1s + when);
}

TEST(ArrivalsTest, WhatComesInOrderOrTwiceLeavesNoGap) {
  Arrivals arrivals;
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    note(arrivals, {number, number}, 10ms * number);
  }
  EXPECT_EQ(arrivals.possibleGaps(), 0u);
}

TEST(ArrivalsTest, OneOrTwoThatAreLostAreNoGap) {
  Arrivals arrivals;
  for (std::uint64_t number = 3; number <= 1000; number += 3) {
    note(arrivals, {number}, 10ms * number);
  }
  EXPECT_EQ(arrivals.possibleGaps(), 0u);
}

TEST(ArrivalsTest, ThreeInARowAreAGapWhenLaterOnesHaveComeForSomeTime) {
  Arrivals arrivals;
  note(arrivals, {1, 2, 6}, 0ms);
  EXPECT_EQ(arrivals.possibleGaps(), 1u);
  note(arrivals, {7}, 3ms);
  EXPECT_EQ(arrivals.gaps(), 0u) << "they may have been overtaken";
  note(arrivals, {8}, 4ms);
  EXPECT_EQ(arrivals.gaps(), 1u);
  note(arrivals, {5000}, 10ms);
  EXPECT_EQ(arrivals.gaps(), 1u);
  note(arrivals, {5001}, 20ms);
  EXPECT_EQ(arrivals.gaps(), 2u);
  note(arrivals, {3, 4, 100}, 30ms);
  EXPECT_EQ(arrivals.gaps(), 2u) << "too late";
}

TEST(ArrivalsTest, AnOutageStaysAGapWhenTheFirstAfterItIsOvertaken) {
  Arrivals arrivals;
  note(arrivals, {1, 55, 53, 54, 56}, 0ms);
  EXPECT_EQ(arrivals.possibleGaps(), 1u);
  note(arrivals, {2}, 1ms);
  note(arrivals, {57}, 4ms);
  EXPECT_EQ(arrivals.gaps(), 1u);
  // Of seven no three in a row are missing in the end.
  note(arrivals, {65, 61, 62, 60}, 5ms);
  EXPECT_EQ(arrivals.possibleGaps(), 1u);
}

TEST(ArrivalsTest, WhatWasOvertakenIsNoGap) {
  Arrivals arrivals;
  note(arrivals, {1, 5, 4, 3, 2, 6}, 0ms);
  note(arrivals, {7}, 20ms);
  EXPECT_EQ(arrivals.possibleGaps(), 0u);
  // The process stands still; what was overtaken waits in the socket before what came later.
  note(arrivals, {11}, 21ms);
  note(arrivals, {8, 9, 10, 12}, 60ms);
  EXPECT_EQ(arrivals.possibleGaps(), 0u);
  note(arrivals, {20}, 61ms);
  note(arrivals, {9, 20, 23, 22, 21}, 62ms);  // repeated, or overtaken after it
  note(arrivals, {24}, 70ms);
  EXPECT_EQ(arrivals.gaps(), 1u);
}

}  // namespace
}  // namespace faultline::channel

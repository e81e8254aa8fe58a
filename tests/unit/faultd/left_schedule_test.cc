#include "harness/faultd/left_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::faultd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const TimePoint kFirstLook(50s);

TEST(LeftScheduleTest, WhatIsLeftIsTriedAtOnceAndThenLaterAndLater) {
  LeftSchedule schedule;
  EXPECT_THAT(schedule.due({"a"}, kFirstLook), ElementsAre("a"));
  EXPECT_THAT(schedule.due({"a"}, kFirstLook + 999ms), IsEmpty());
  EXPECT_THAT(schedule.due({"a"}, kFirstLook + 1s), ElementsAre("a"));
  EXPECT_THAT(schedule.due({"a"}, kFirstLook + 2s), IsEmpty());
  EXPECT_THAT(schedule.due({"a"}, kFirstLook + 3s), ElementsAre("a"));
  int tries = 0;
  constexpr int kMinutes = 60;
  for (Duration after = 4s; after < kMinutes * 1min; after += 1s) {
    tries += static_cast<int>(schedule.due({"a"}, kFirstLook + after).size());
  }
  EXPECT_GE(tries, kMinutes - 1);
  EXPECT_LE(tries, kMinutes + 6);
}

TEST(LeftScheduleTest, EachHasATurnOfItsOwn) {
  LeftSchedule schedule;
  EXPECT_THAT(schedule.due({"a"}, kFirstLook), ElementsAre("a"));
  EXPECT_THAT(schedule.due({"a", "b"}, kFirstLook + 500ms), ElementsAre("b"));
}

TEST(LeftScheduleTest, WhatIsNotLeftAnyMoreIsForgotten) {
  LeftSchedule schedule;
  EXPECT_THAT(schedule.due({"a"}, kFirstLook), ElementsAre("a"));
  EXPECT_THAT(schedule.due({}, kFirstLook), IsEmpty());
  EXPECT_THAT(schedule.due({"a"}, kFirstLook), ElementsAre("a"));
}

}  // namespace
}  // namespace faultline::faultd

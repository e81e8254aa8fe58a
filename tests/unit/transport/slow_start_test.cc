#include <gtest/gtest.h>

#include "resilient_ccl/transport/tcp/congestion_control.h"

namespace faultline::transport::tcp {
namespace {

constexpr TimePoint kBegin{1s};

TEST(SlowStartTest, ItsEndIsFollowedWhenItHasLasted) {
  SlowStart slowStart;
  EXPECT_FALSE(slowStart.changed(true, kBegin));
  EXPECT_FALSE(slowStart.changed(false, kBegin));
  EXPECT_FALSE(slowStart.changed(false, kBegin + SlowStart::kSettled - 1us));
  EXPECT_TRUE(slowStart.changed(false, kBegin + SlowStart::kSettled));
  EXPECT_FALSE(slowStart.changed(false, kBegin + 1min)) << "once";
}

TEST(SlowStartTest, AnEndThatIsTakenBackIsNotFollowed) {
  SlowStart slowStart;
  TimePoint at = kBegin;
  for (int turn = 0; turn < 100; ++turn) {
    EXPECT_FALSE(slowStart.changed(false, at));
    EXPECT_FALSE(slowStart.changed(false, at += SlowStart::kSettled - 1us));
    EXPECT_FALSE(slowStart.changed(true, at += 1us));
  }
}

TEST(SlowStartTest, AStreamThatBeginsWithItAgainIsFollowedToo) {
  SlowStart slowStart;
  slowStart.changed(false, kBegin);
  ASSERT_TRUE(slowStart.changed(false, kBegin + SlowStart::kSettled));
  EXPECT_FALSE(slowStart.changed(true, kBegin + 1s));
  EXPECT_TRUE(slowStart.changed(true, kBegin + 1s + SlowStart::kSettled));
}

}  // namespace
}  // namespace faultline::transport::tcp

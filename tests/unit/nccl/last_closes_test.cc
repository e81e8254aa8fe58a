#include "resilient_ccl/nccl/last_closes.h"

#include <gtest/gtest.h>

namespace faultline::nccl {
namespace {

constexpr TimePoint kFirstClose = TimePoint{} + 100s;

TEST(LastClosesTest, AHundredSilentPeersAreWaitedForOnce) {
  LastCloses closes(1s, 20ms);
  TimePoint now = kFirstClose;
  EXPECT_EQ(closes.deadline(now), kFirstClose + 1s);
  now += 1s;
  for (int peer = 1; peer < 100; ++peer) {
    const TimePoint until = closes.deadline(now);
    EXPECT_EQ(until, now + 20ms) << peer;
    now = until;
  }
  EXPECT_EQ(now, kFirstClose + 1s + 99 * 20ms);
}

TEST(LastClosesTest, WhoIsQuickLeavesTheTimeToTheOthers) {
  LastCloses closes(1s, 20ms);
  for (int peer = 0; peer < 10; ++peer) {
    EXPECT_EQ(closes.deadline(kFirstClose + peer * 10ms), kFirstClose + 1s) << peer;
  }
}

TEST(LastClosesTest, ACommunicatorThatEndsLaterHasATimeOfItsOwn) {
  LastCloses closes(1s, 20ms);
  EXPECT_EQ(closes.deadline(kFirstClose), kFirstClose + 1s);
  EXPECT_EQ(closes.deadline(kFirstClose + 1500ms), kFirstClose + 1520ms) << "one of the same";
  EXPECT_EQ(closes.deadline(kFirstClose + 2520ms), kFirstClose + 2540ms)
      << "as late as one of the same may be";
  EXPECT_EQ(closes.deadline(kFirstClose + 3600ms), kFirstClose + 4600ms);
}

}  // namespace
}  // namespace faultline::nccl

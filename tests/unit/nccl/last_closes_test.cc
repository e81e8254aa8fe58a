#include "resilient_ccl/nccl/last_closes.h"

#include <gtest/gtest.h>

namespace faultline::nccl {
namespace {

constexpr TimePoint kFirstClose = TimePoint{} + 100s;

TEST(LastClosesTest, AHundredSilentPeersAreWaitedForOnce) {
  LastCloses closes(1s, 20ms);
  TimePoint now = kFirstClose;
  for (int peer = 0; peer < 100; ++peer) {
    const Duration patience = closes.patience(now);
    EXPECT_EQ(patience, peer == 0 ? 1s : 20ms) << peer;
    now += patience;
    closes.waitedInVain(patience, now);
  }
}

TEST(LastClosesTest, PeersThatListenTakeNothingFromTheOthers) {
  LastCloses closes(1s, 20ms);
  for (int peer = 0; peer < 10; ++peer) {
    EXPECT_EQ(closes.patience(kFirstClose + peer * 300ms), 1s) << peer;
  }
  closes.waitedInVain(400ms, kFirstClose + 3s);
  EXPECT_EQ(closes.patience(kFirstClose + 3s), 600ms);
}

TEST(LastClosesTest, ACommunicatorThatEndsLaterHasATimeOfItsOwn) {
  LastCloses closes(1s, 20ms);
  closes.waitedInVain(1s, kFirstClose);
  EXPECT_EQ(closes.patience(kFirstClose + 1s), 20ms);
  closes.waitedInVain(20ms, kFirstClose + 1s);
  EXPECT_EQ(closes.patience(kFirstClose + 2s), 20ms);
  EXPECT_EQ(closes.patience(kFirstClose + 2001ms), 1s);
}

}  // namespace
}  // namespace faultline::nccl

#include "harness/control/server_watch.h"

#include <gtest/gtest.h>

#include <array>

namespace faultline::run {
namespace {

constexpr TimePoint kBegan{1000s};
constexpr std::array kFirstRanks{0, 2};

ServerWatch startedWatch() {
  ServerWatch watch;
  watch.started(kFirstRanks, kBegan);
  return watch;
}

TEST(ServerWatchTest, OneRankThatSaysNothingIsEnough) {
  ServerWatch watch = startedWatch();
  watch.alive(0, kBegan + 5s);
  EXPECT_EQ(watch.quietSince(), kBegan);
  watch.alive(2, kBegan + 3s);
  EXPECT_EQ(watch.quietSince(), kBegan + 3s);
}

TEST(ServerWatchTest, PrefillThatWaitsDoesNotHangWhileDecodeWorks) {
  ServerWatch watch = startedWatch();
  watch.stepDone(2, kBegan + 4s);  // of the batch that the keys and values wait for
  EXPECT_EQ(watch.quietSince(), kBegan + 4s);
}

TEST(ServerWatchTest, PrefillThatGoesOnDoesNotShowThatWhatItSendsArrives) {
  ServerWatch watch = startedWatch();
  watch.stepDone(0, kBegan + 4s);
  watch.alive(0, kBegan + 5s, 10s);
  EXPECT_EQ(watch.quietSince(), kBegan);
}

TEST(ServerWatchTest, AnnouncedComputingIsWork) {
  ServerWatch watch = startedWatch();
  watch.alive(2, kBegan + 1s, 10s);
  EXPECT_EQ(watch.quietSince(), kBegan + 11s);
  watch.stepDone(2, kBegan + 2s);
  EXPECT_EQ(watch.quietSince(), kBegan + 11s);
}

TEST(ServerWatchTest, ANewAttemptOwesNothingToTheOldOne) {
  ServerWatch watch = startedWatch();
  watch.alive(2, kBegan + 1s, 100s);
  watch.started(kFirstRanks, kBegan + 9s);
  EXPECT_EQ(watch.quietSince(), kBegan + 9s);
}

}  // namespace
}  // namespace faultline::run

#include "resilient_ccl/fabric/polled_rail.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/clock.h"

namespace faultline::fabric {
namespace {

struct NoSink : transport::RailSink {
  Result<std::byte*> place(int, const transport::ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const transport::ChunkHeader&) override {}
  void railFailed(int, const Status&) override {}
};

class PolledRailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    far_ = UniqueFd(ends[0]);
    near_ = ends[1];
    ASSERT_TRUE(poller_.open().ok());
    rail_ = std::make_unique<PolledRail>(0, UniqueFd(near_), sink_, poller_);
    ASSERT_TRUE(rail_->start().ok());
  }

  UniqueFd far_;
  int near_ = -1;  // the rail's
  Poller poller_;
  NoSink sink_;
  std::unique_ptr<PolledRail> rail_;
};

// A child of fork has a copy of the socket, so that it stays open when the rail has closed it.
TEST_F(PolledRailTest, AFencedRailDoesNotKeepThePollerAwakeWhoeverElseHasItsSocket) {
  const UniqueFd copy(dup(near_));
  rail_->fence();
  ASSERT_EQ(send(far_.get(), "x", 1, 0), 1);
  constexpr Duration kSleep = 100ms;
  const TimePoint begin = now();
  ASSERT_TRUE(poller_.wait(kSleep).ok());
  EXPECT_GE(now() - begin, kSleep) << "it was woken for a rail that there is not";
}

TEST_F(PolledRailTest, AWordThatThereIsRoomGoesWhenItIsTransmitted) {
  rail_->tellRoom();
  rail_->transmit();
  transport::ChunkHeader word;
  ASSERT_EQ(recv(far_.get(), &word, sizeof(word), 0), static_cast<ssize_t>(sizeof(word)));
  EXPECT_EQ(word, transport::kRoomWord);
}

TEST_F(PolledRailTest, AChildThatEndsItsCopyLeavesTheRailOfItsParentAlone) {
  const pid_t child = fork();
  if (child == 0) {
    rail_->fence();
    _exit(rail_->fenced() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(send(far_.get(), "x", 1, 0), 1);
  ASSERT_TRUE(poller_.wait(5s).ok());
  int unread = 0;
  ASSERT_EQ(ioctl(near_, FIONREAD, &unread), 0);
  EXPECT_EQ(unread, 0) << "the poller no longer watches it";
}

}  // namespace
}  // namespace faultline::fabric

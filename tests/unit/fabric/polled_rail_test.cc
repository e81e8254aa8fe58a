#include "resilient_ccl/fabric/polled_rail.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/clock.h"

namespace faultline::fabric {
namespace {

struct NoSink : transport::RailSink {
  Result<std::byte*> place(int, const transport::ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const transport::ChunkHeader&) override {}
  void railFailed(int, const Status&) override {}
};

// A child of fork has a copy of the socket, so that it stays open when the rail has closed it.
TEST(PolledRailTest, AFencedRailDoesNotKeepThePollerAwakeWhoeverElseHasItsSocket) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd far(ends[0]), copy(dup(ends[1]));
  Poller poller;
  ASSERT_TRUE(poller.open().ok());
  NoSink sink;
  PolledRail rail(0, UniqueFd(ends[1]), sink, poller);
  ASSERT_TRUE(rail.start().ok());
  rail.fence();
  ASSERT_EQ(send(far.get(), "x", 1, 0), 1);
  constexpr Duration kSleep = 100ms;
  const TimePoint begin = now();
  ASSERT_TRUE(poller.wait(kSleep).ok());
  EXPECT_GE(now() - begin, kSleep) << "it was woken for a rail that there is not";
}

TEST(PolledRailTest, AWordThatThereIsRoomGoesWhenItIsTransmitted) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd far(ends[0]);
  Poller poller;
  ASSERT_TRUE(poller.open().ok());
  NoSink sink;
  PolledRail rail(0, UniqueFd(ends[1]), sink, poller);
  ASSERT_TRUE(rail.start().ok());
  rail.tellRoom();
  rail.transmit();
  transport::ChunkHeader word;
  ASSERT_EQ(recv(far.get(), &word, sizeof(word), 0), static_cast<ssize_t>(sizeof(word)));
  EXPECT_EQ(word, transport::kRoomWord);
}

TEST(PolledRailTest, AChildThatEndsItsCopyLeavesTheRailOfItsParentAlone) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd far(ends[0]);
  Poller poller;
  ASSERT_TRUE(poller.open().ok());
  NoSink sink;
  PolledRail rail(0, UniqueFd(ends[1]), sink, poller);
  ASSERT_TRUE(rail.start().ok());
  const pid_t child = fork();
  if (child == 0) {
    rail.fence();
    _exit(rail.fenced() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(send(far.get(), "x", 1, 0), 1);
  ASSERT_TRUE(poller.wait(5s).ok());
  int unread = 0;
  ASSERT_EQ(ioctl(ends[1], FIONREAD, &unread), 0);
  EXPECT_EQ(unread, 0) << "the poller no longer watches it";
}

}  // namespace
}  // namespace faultline::fabric

#include "resilient_ccl/fabric/shared_rail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>

namespace faultline::fabric {
namespace {

struct NobodysSink : transport::RailSink, transport::shm::DatagramSink {
  Result<std::byte*> place(int, const transport::ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const transport::ChunkHeader&) override {}
  void railFailed(int, const Status& why) override { ADD_FAILURE() << why.message(); }
  void datagramArrived(std::span<const std::byte>) override {}
};

class SharedRailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(poller_.open().ok());
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    far_ = UniqueFd(ends[0]);
    copy_ = UniqueFd(fcntl(ends[1], F_DUPFD_CLOEXEC, 0));
    rail_.emplace(0, UniqueFd(ends[1]), static_cast<transport::RailSink&>(sink_),
                  static_cast<transport::shm::DatagramSink&>(sink_), poller_);
    ASSERT_TRUE(rail_->start(/*offers=*/true).ok());
  }
  int ready() {
    const Result<int> count = poller_.wait(Duration::zero());
    EXPECT_TRUE(count.ok());
    return count.ok() ? *count : -1;
  }

  NobodysSink sink_;
  Poller poller_;
  UniqueFd far_;
  UniqueFd copy_;  // as a child has that was forked off
  std::optional<SharedRail> rail_;
};

TEST_F(SharedRailTest, IsWatchedUntilItsFenceWhoeverElseHasTheSocket) {
  EXPECT_EQ(ready(), 0);
  ASSERT_EQ(send(far_.get(), "b", 1, 0), 1);
  EXPECT_EQ(ready(), 1);
  ASSERT_EQ(ready(), 0) << "it has been read";
  rail_->fence();
  ASSERT_EQ(send(far_.get(), "b", 1, MSG_NOSIGNAL), 1) << "the copy has an end of it";
  EXPECT_EQ(ready(), 0);
  rail_->fence();
  EXPECT_TRUE(rail_->fenced());
}

}  // namespace
}  // namespace faultline::fabric

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "resilient_ccl/nccl/greeting.h"

namespace faultline::nccl {
namespace {

class FramesTest : public ::testing::Test {
 protected:
  FramesTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    here_.emplace(UniqueFd(ends[0]));
    there_.emplace(UniqueFd(ends[1]));
  }

  void say(std::string_view bytes) {
    there_->send(bytes);
    const Result<bool> all = there_->flush();
    ASSERT_TRUE(all.ok() && *all);
  }

  std::optional<Frames> here_, there_;
};

TEST_F(FramesTest, EachFrameComesOnce) {
  say("first");
  say("");
  say("third");
  for (const char* expected : {"first", "", "third"}) {
    const auto frame = here_->receive();
    ASSERT_TRUE(frame.ok() && *frame);
    EXPECT_EQ(**frame, expected);
  }
  const auto none = here_->receive();
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
}

TEST_F(FramesTest, WhatTheSocketHasNoRoomForGoesLater) {
  const std::string frame(4000, 'x');
  int frames = 0;
  Result<bool> all = true;
  while (all.ok() && *all) {
    there_->send(frame);
    all = there_->flush();
    ++frames;
  }
  ASSERT_TRUE(all.ok()) << all.status().message();
  int came = 0;
  while (came < frames) {
    const auto got = here_->receive();
    ASSERT_TRUE(got.ok()) << got.status().message();
    if (*got) {
      EXPECT_EQ(**got, frame);
      ++came;
      continue;
    }
    all = there_->flush();
    ASSERT_TRUE(all.ok()) << all.status().message();
  }
  EXPECT_TRUE(*all);
}

TEST_F(FramesTest, ToWhomHasClosedNothingIsSent) {
  here_.reset();
  there_->send("greeting");
  EXPECT_FALSE(there_->flush().ok());
}

// Who has answered a greeting keeps the socket until the other end has closed it, and no longer.
TEST_F(FramesTest, ThatTheOtherEndHasClosedIsSeenAfterItsFrame) {
  say("greeting");
  const auto frame = here_->receive();
  ASSERT_TRUE(frame.ok() && *frame);
  EXPECT_TRUE(here_->receive().ok());
  there_.reset();
  for (const int before : {EINTR, EAGAIN, 0}) {
    errno = before;  // as an earlier call has left it
    EXPECT_EQ(here_->receive().status().code(), Code::kUnavailable) << before;
  }
}

}  // namespace
}  // namespace faultline::nccl

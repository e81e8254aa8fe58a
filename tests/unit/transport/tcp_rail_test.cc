#include "resilient_ccl/transport/tcp/tcp_rail.h"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "resilient_ccl/transport/tcp/socket.h"
#include "tests/support/poll_until.h"

namespace faultline::transport::tcp {
namespace {

constexpr int kPatienceMs = 20'000;

struct NoSink : RailSink {
  Result<std::byte*> place(int, const ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const ChunkHeader&) override {}
  void railFailed(int, const Status&) override { ++failures; }
  int failures = 0;
};

/// Rails of a process that forks: its children have copies of their sockets.
class ForkedRailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const SocketPlace loopback{0x7f000001, "", 0};
    const auto listener = openListener(loopback);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    auto near = beginConnect(loopback, *localEndpoint(listener->get()));
    ASSERT_TRUE(near.ok()) << near.status().message();
    ASSERT_TRUE(readable(listener->get(), kPatienceMs));
    far = UniqueFd(accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    ASSERT_TRUE(far);
    rail = std::make_unique<TcpRail>(0, std::move(*near), sink);
  }
  static bool readable(int fd, int milliseconds) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, milliseconds) == 1;
  }

  NoSink sink;
  UniqueFd far;
  std::unique_ptr<TcpRail> rail;
};

TEST_F(ForkedRailTest, AFenceIsHeardAtTheOtherEndWhoeverElseHasTheSocket) {
  const UniqueFd copy(dup(rail->fd()));
  rail->fence();
  ASSERT_TRUE(readable(far.get(), kPatienceMs)) << "the other end has heard nothing";
  char byte;
  EXPECT_EQ(recv(far.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

// Whoever loads the rails may have left the signal as it is, which ends the program.
TEST_F(ForkedRailTest, WritingWhereNothingCanBeWrittenIsAnErrorAndNoSignal) {
  const pid_t child = fork();
  if (child == 0) {
    (void)signal(SIGPIPE, SIG_DFL);
    (void)shutdown(rail->fd(), SHUT_WR);
    const std::byte data{};
    rail->submit({.messageLength = 1, .length = 1}, &data, {});
    rail->write(/*streamIsWritable=*/true);
    _exit(sink.failures == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << (WIFSIGNALED(status) ? "ended by a signal" : "no failure was told");
}

TEST_F(ForkedRailTest, AChildThatEndsItsCopyLeavesTheConnectionOfItsParentAlone) {
  const pid_t child = fork();
  if (child == 0) {
    rail->fence();
    _exit(rail->fenced() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(readable(far.get(), 0));
  ASSERT_EQ(send(far.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(readable(rail->fd(), kPatienceMs));
}

// Of Ethernet's MTU: 20 bytes of IP, then TCP's header of 20 (32 with timestamps), or UDP's of 8.
TEST(TcpFrameTest, IsThePayloadOfADatagramAsLongAsASegment) {
  EXPECT_EQ(TcpRail::frameOf(1460, /*timestamps=*/false), 1472);
  EXPECT_EQ(TcpRail::frameOf(1448, /*timestamps=*/true), 1472);
  EXPECT_EQ(TcpRail::frameOf(8948, /*timestamps=*/true), 8972);
  EXPECT_EQ(TcpRail::frameOf(65483, /*timestamps=*/true), 65507) << "no datagram is longer";
  EXPECT_EQ(TcpRail::frameOf(0, /*timestamps=*/true), 0) << "not known";
}

class TcpDeliveryTest : public ForkedRailTest {
 protected:
  /// Bytes wait, and none is under way.
  bool waits() const {
    int all = 0, unsent = 0;
    EXPECT_EQ(ioctl(rail->fd(), SIOCOUTQ, &all), 0);
    EXPECT_EQ(ioctl(rail->fd(), SIOCOUTQNSD, &unsent), 0);
    return all > 0 && all == unsent;
  }
};

TEST_F(TcpDeliveryTest, OnlyWhatIsNotAcknowledgedIsOutstanding) {
  const std::byte data{};
  rail->submit({.messageLength = 1, .length = 1}, &data, {});
  rail->write(/*streamIsWritable=*/true);
  ASSERT_TRUE(test::pollUntil(std::chrono::milliseconds(kPatienceMs), [&] {
    int all = 0;
    return ioctl(rail->fd(), SIOCOUTQ, &all) == 0 && all == 0;
  }));
  const Delivery delivery = rail->delivery();
  EXPECT_FALSE(delivery.outstanding);
  EXPECT_GT(delivery.acknowledged, sizeof(ChunkHeader));
}

TEST_F(TcpDeliveryTest, WhatTheOtherEndHasNoRoomForIsNotRefusedHere) {
  EXPECT_FALSE(rail->delivery().refused) << "nothing waits";
  static const std::vector<std::byte> chunk(1 << 20);
  const auto length = static_cast<std::uint32_t>(chunk.size());
  for (std::uint64_t sequence = 0; sequence < 64; ++sequence) {
    rail->submit(
        {.sequence = sequence, .offset = 0, .messageLength = length, .slot = 0, .length = length},
        chunk.data(), {});
  }
  ASSERT_TRUE(test::pollUntil(std::chrono::milliseconds(kPatienceMs), [&] {
    rail->write(true);
    return waits();
  })) << "the receiver takes whatever comes";
  EXPECT_FALSE(rail->delivery().refused);
}

}  // namespace
}  // namespace faultline::transport::tcp

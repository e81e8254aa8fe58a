#include "injector/netlink/frame_hold.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/packet_socket.h"
#include "injector/netlink/root_queue.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::netlink {
namespace {

constexpr int kOutlet = 11;
constexpr int kSource = 22;
constexpr std::uint16_t kNobodysProtocol = 0x88b5;  // for experiments (IEEE 802)
constexpr Duration kComesWithin = 5s;

/// A link whose frames are held where they arrive, and sent again where they came from.
class FrameHoldTest : public test::NetnsTest {
 protected:
  using Numbered = std::array<std::uint32_t, 250>;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(const UniqueFd outlet, newNamespace());
    ASSERT_OK_AND_ASSIGN(const UniqueFd source, newNamespace());
    ASSERT_OK_AND_ASSIGN(Socket outlet_socket, Socket::open(outlet.get()));
    outlet_.emplace(std::move(outlet_socket));
    ASSERT_OK_AND_ASSIGN(Socket source_socket, Socket::open(source.get()));
    source_.emplace(std::move(source_socket));
    ASSERT_OK(createVeth(*outlet_, {.name = "outlet", .ifindex = kOutlet}, source.get(),
                         {.name = "source", .ifindex = kSource}));
    ASSERT_OK(setUp(*outlet_, kOutlet, true));
    ASSERT_OK(setUp(*source_, kSource, true));
    ASSERT_OK_AND_ASSIGN(PacketSocket sender, PacketSocket::open(*outlet_, kOutlet, 0));
    sender_.emplace(std::move(sender));
    ASSERT_OK_AND_ASSIGN(PacketSocket seen,
                         PacketSocket::open(*source_, kSource, kNobodysProtocol));
    seen_.emplace(std::move(seen));
    constexpr int kRoomForAll = 8 << 20;
    ASSERT_EQ(::setsockopt(seen_->fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kRoomForAll, sizeof(int)), 0);
    ASSERT_OK_AND_ASSIGN(FrameHold hold,
                         FrameHold::open(*source_, {{.ifindex = kSource}}, {&*outlet_, kOutlet}));
    hold_.emplace(std::move(hold));
    ASSERT_TRUE(test::pollUntil(kComesWithin, [&] {  // a link takes a while to come up
      sendNumber(0);
      return !arrived().empty();
    }));
  }

  void sendNumber(std::uint32_t number) {
    Numbered frame{};
    frame[0] = number;
    ASSERT_OK_AND_ASSIGN(const bool sent, sender_->send(kNobodysProtocol, kBroadcastMac,
                                                        frame.data(), sizeof frame));
    ASSERT_TRUE(sent);
  }
  /// The numbers that have arrived since the last call.
  std::vector<std::uint32_t> arrived() {
    std::vector<std::uint32_t> numbers;
    while (true) {
      Numbered frame{};
      const auto size = seen_->receive(frame.data(), sizeof frame);
      EXPECT_OK(size.status());
      if (!size.ok() || !*size) return numbers;
      numbers.push_back(frame[0]);
    }
  }

  std::optional<Socket> outlet_, source_;
  std::optional<PacketSocket> sender_, seen_;
  std::optional<FrameHold> hold_;
};

TEST_F(FrameHoldTest, WhatAFullQueueDoesNotTakeGoesOutLater) {
  ASSERT_OK(hold_->begin());
  constexpr std::uint32_t kHeld = 600;
  for (std::uint32_t number = 0; number < kHeld; ++number) {
    sendNumber(number);
    ASSERT_TRUE(test::pollUntil(kComesWithin, [&] { return !arrived().empty(); }));
  }
  ASSERT_OK(hold_->end());
  ASSERT_OK_AND_ASSIGN(const HoldCounts held, hold_->counts());
  ASSERT_GE(held.taken, kHeld) << "and what the kernel says to its neighbours";
  ASSERT_EQ(held.lost, 0);
  ASSERT_OK(installTokenBucket(*outlet_, kOutlet, 8'000));
  for (int again = 0; again < 3; ++again) {
    ASSERT_OK_AND_ASSIGN(const bool gone, hold_->release());
    EXPECT_FALSE(gone);
  }
  const std::int64_t first = hold_->released().frames;
  EXPECT_GT(first, 0);
  EXPECT_LT(first, kHeld);
  ASSERT_OK(removeRootQueue(*outlet_, kOutlet));  // what waited in it is lost
  (void)arrived();
  ASSERT_TRUE(test::pollUntil(kComesWithin, [&] {
    const auto gone = hold_->release();
    EXPECT_OK(gone.status());
    return !gone.ok() || *gone;
  }));
  EXPECT_EQ(hold_->released().frames, held.taken);
  EXPECT_EQ(hold_->refused(), 0);
  std::vector<std::uint32_t> rest;
  EXPECT_TRUE(test::pollUntil(kComesWithin, [&] {
    for (const std::uint32_t number : arrived()) rest.push_back(number);
    return !rest.empty() && rest.back() == kHeld - 1;
  }));
  EXPECT_GE(rest.size(),
            static_cast<std::size_t>(held.taken - first) / 2);  // others are no numbers
  for (std::size_t i = 1; i < rest.size(); ++i) EXPECT_EQ(rest[i], rest[i - 1] + 1);
}

}  // namespace
}  // namespace faultline::netlink

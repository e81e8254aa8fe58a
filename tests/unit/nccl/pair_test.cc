#include "resilient_ccl/nccl/pair.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kTag = 3;
constexpr Duration kLong = 20s;

/// Both processes of a pair, in one, over loopback.
class PairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::array identities{newIdentity(), newIdentity()};
    for (int side = 0; side < 2; ++side) {
      auto settings = pairSettings(side, /*rails=*/1, identities[side]);
      ASSERT_TRUE(settings.ok()) << settings.status().message();
      auto pair = Pair::create(*std::move(settings));
      ASSERT_TRUE(pair.ok()) << pair.status().message();
      pairs_[side] = *pair;
    }
    for (int side = 0; side < 2; ++side) {
      const Pair& other = *pairs_[1 - side];
      ASSERT_TRUE(
          pairs_[side]
              ->meet(identities[1 - side]->keys.publicKey(), other.address(), other.incarnation())
              .ok());
    }
    const TimePoint deadline = now() + kLong;
    std::array<bool, 2> ready{};
    while (!(ready[0] && ready[1]) && now() < deadline) {
      for (int side = 0; side < 2; ++side) {
        const auto is = pairs_[side]->ready();
        ASSERT_TRUE(is.ok()) << is.status().message();
        ready[side] = *is;
      }
    }
    ASSERT_TRUE(ready[0] && ready[1]);
    sender_ = Pair::open(pairs_[0], 7, /*sends=*/true);
    receiver_ = Pair::open(pairs_[1], 7, /*sends=*/false);
  }

  Request* send(const std::int64_t& value) {
    return pairs_[0]->send(*sender_, kTag, reinterpret_cast<const std::byte*>(&value), 8);
  }
  Request* receive(std::int64_t& value) {
    const Pair::Buffer buffer{kTag, reinterpret_cast<std::byte*>(&value), 8};
    return pairs_[1]->receive(*receiver_, std::span(&buffer, 1));
  }
  Result<bool> await(int side, Request* request, Duration time = kLong) {
    const TimePoint deadline = now() + time;
    for (;;) {
      const auto done = pairs_[side]->test(*request, nullptr);
      if (!done.ok() || *done || now() >= deadline) return done;
      for (const auto& pair : pairs_) {
        if (pair) (void)pair->tend(now());
      }
    }
  }
  void exchange(int messages) {
    for (std::int64_t i = 0; i < messages; ++i) {
      std::int64_t to = -1;
      Request* const got = receive(to);
      const auto sent = await(0, send(i));
      ASSERT_TRUE(sent.ok() && *sent);
      const auto came = await(1, got);
      ASSERT_TRUE(came.ok() && *came);
      EXPECT_EQ(to, i);
    }
  }

  std::array<std::shared_ptr<Pair>, 2> pairs_;
  std::unique_ptr<Connection> sender_, receiver_;
};

TEST_F(PairTest, ShortMessagesThatHaveComeAreThereThoughTheirSenderHasEnded) {
  exchange(20);
  const std::array<std::int64_t, 3> values{100, 101, 102};
  for (const std::int64_t& value : values) {
    const auto sent = await(0, send(value));
    ASSERT_TRUE(sent.ok() && *sent) << "nobody has asked for it";
  }
  // As a process that ends: what it has sent is delivered, and it says so.
  const TimePoint deadline = now() + kLong;
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) (void)pairs_[1]->tend(now());
  });
  EXPECT_TRUE(pairs_[0]->drain(deadline));
  pairs_[0]->sayGoodbye(deadline);
  over = true;
  other.join();
  sender_.reset();
  pairs_[0].reset();
  while (!pairs_[1]->failed() && now() < deadline) (void)pairs_[1]->tend(now());
  ASSERT_TRUE(pairs_[1]->failed());
  for (const std::int64_t value : values) {
    std::int64_t to = -1;
    const auto came = await(1, receive(to));
    ASSERT_TRUE(came.ok() && *came) << came.status().message();
    EXPECT_EQ(to, value);
  }
  std::int64_t to = -1;
  EXPECT_FALSE(await(1, receive(to)).ok()) << "no more came";
  EXPECT_EQ(pairs_[1]->account().received, 23 * 8);
}

// Its connections are reset when it has said so: no rail has failed.
TEST_F(PairTest, TheRailsOfAPeerThatHasEndedAreNotFailovers) {
  exchange(20);
  const TimePoint deadline = now() + kLong;
  // Who waits for something polls, and the pair does not end before it has heard so.
  std::int64_t to = -1;
  Request* const waits = receive(to);
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended && now() < deadline) ended = !pairs_[1]->test(*waits, nullptr).ok();
  });
  EXPECT_TRUE(pairs_[0]->drain(deadline));
  pairs_[0]->sayGoodbye(deadline);
  sender_.reset();
  pairs_[0].reset();
  other.join();
  EXPECT_TRUE(ended);
  const Pair::Account account = pairs_[1]->account();
  EXPECT_EQ(account.failovers, 0U);
  EXPECT_TRUE(account.history.happenings().empty());
}

TEST(PairLinkTest, IsAsTheOptionsAndTheNicsOfTheNodeSay) {
  const auto options = Options::read([](const std::string& name) -> std::optional<std::string> {
    if (name == "FAULTLINE_GIVE_UP") return "20s";
    if (name == "FAULTLINE_CHUNK") return "128KiB";
    if (name == "FAULTLINE_SMALL") return "4KiB";
    if (name == "FAULTLINE_HOLD_OFF") return "20s";
    if (name == "FAULTLINE_NET_STRATEGY") return "hot_repair";
    return std::nullopt;
  });
  ASSERT_TRUE(options.ok()) << options.status().message();
  const std::vector<std::vector<int>> partners{{2, 1}, {0, 2}, {0, 1}};
  const channel::LinkOptions link = Pair::linkOptions({.options = *options,
                                                       .rails = {},
                                                       .partners = partners,
                                                       .ioThreads = {},
                                                       .identity = nullptr,
                                                       .self = {},
                                                       .peer = {}});
  EXPECT_EQ(link.partners, partners) << "who takes over whose load";
  EXPECT_EQ(link.policy, channel::Policy::kPinned);
  EXPECT_EQ(link.giveUp, 18s);
  EXPECT_EQ(link.chunkBytes, 128 << 10);
  EXPECT_EQ(link.leastPart, 128 << 10);
  EXPECT_EQ(link.smallMessage, 4 << 10);
  EXPECT_EQ(link.windowTime, 4ms) << "FlowTest.AFastRailIsFilled... tells why";
  EXPECT_EQ(link.tailBudget, 65 * (128 << 10)) << "TailTest.WithABudgetOfAll... tells why";
  EXPECT_EQ(link.holdOff, 20s);
  EXPECT_GE(link.longestHoldOff, 20s);
}

TEST_F(PairTest, AMessageThatIsLongerThanAllBeforeItComesInItsPlace) {
  exchange(20);
  const std::vector<std::byte> longer(1 << 20, std::byte{7});
  std::vector<std::byte> to(longer.size());
  const auto size = static_cast<Bytes>(to.size());
  const Pair::Buffer buffer{kTag, to.data(), size};
  Request* const got = pairs_[1]->receive(*receiver_, std::span(&buffer, 1));
  Request* const sending = pairs_[0]->send(*sender_, kTag, longer.data(), size);
  const auto came = await(1, got);
  ASSERT_TRUE(came.ok() && *came) << came.status().message();
  const auto sent = await(0, sending);
  ASSERT_TRUE(sent.ok() && *sent);
  EXPECT_TRUE(to == longer);
  exchange(20);
}

// NCCL asks nobody about a send that was copied: it goes, and what acknowledges it is looked at.
TEST_F(PairTest, ShortMessagesGoThoughTheirSenderIsNeverPolled) {
  exchange(20);
  constexpr std::int64_t kMessages = 100;
  std::vector<std::int64_t> values(kMessages);
  for (std::int64_t i = 0; i < kMessages; ++i) {
    values[i] = i;
    ASSERT_NE(send(values[i]), nullptr) << i;
    std::int64_t to = -1;
    Request* const got = receive(to);
    Result<bool> came = false;
    ASSERT_TRUE(test::pollUntil(kLong, [&] {
      came = pairs_[1]->test(*got, nullptr);
      return !came.ok() || *came;
    })) << i;
    ASSERT_TRUE(came.ok()) << came.status().message();
    EXPECT_EQ(to, i);
  }
}

TEST_F(PairTest, WhatIsAbandonedFailsAtThisEndWithoutAWordToTheOther) {
  exchange(20);
  const std::int64_t value = 5;
  std::int64_t to = -1;
  Request* const waits = receive(to);
  pairs_[1]->abandon();
  EXPECT_TRUE(pairs_[1]->failed());
  const auto outcome = pairs_[1]->test(*waits, nullptr);
  EXPECT_EQ(outcome.status().code(), Code::kAborted);
  EXPECT_EQ(outcome.status().message(), "this process ends");
  EXPECT_EQ(pairs_[1]->account().failure, "") << "no failure of the peer's";
  (void)pairs_[0]->test(*send(value), nullptr);
  EXPECT_FALSE(pairs_[0]->drain(now() + 50ms)) << "it has gone nowhere";
  EXPECT_EQ(to, -1);
  pairs_[1]->abandon();
  EXPECT_EQ(pairs_[1]->test(*waits, nullptr).status().message(), "this process ends");
}

TEST_F(PairTest, WhatWasPostedAheadGoesWithItsConnection) {
  exchange(20);
  EXPECT_GT(pairs_[1]->postedAhead(), 0U);
  const std::int64_t value = 5;
  const auto sent = await(0, send(value));
  ASSERT_TRUE(sent.ok() && *sent);
  (void)pairs_[1]->close(*receiver_);
  EXPECT_EQ(pairs_[1]->postedAhead(), 0U) << "over TCP nothing writes into it any more";
  (void)pairs_[0]->close(*sender_);
}

TEST_F(PairTest, TheLastConnectionThatIsClosedIsTheLastOfAllThatWereOpened) {
  const auto other = Pair::open(pairs_[0], 8, /*sends=*/true);
  EXPECT_FALSE(pairs_[0]->close(*sender_));
  const auto another = Pair::open(pairs_[0], 9, /*sends=*/false);
  EXPECT_FALSE(pairs_[0]->close(*other));
  EXPECT_TRUE(pairs_[0]->close(*another));
  EXPECT_TRUE(pairs_[1]->close(*receiver_));
}

// What was copied outlives its connection; of a peer that stands still it is waited for as long as
// was said, and whoever wants the pair meanwhile has it.
TEST_F(PairTest, WhatWasCopiedIsWaitedForButNotForEver) {
  exchange(20);
  // Nobody serves the other side from here on.
  const std::int64_t value = 5;
  Request* const sent = send(value);
  const auto done = pairs_[0]->test(*sent, nullptr);
  ASSERT_TRUE(done.ok() && *done) << "a message that was to be copied";
  EXPECT_TRUE(pairs_[0]->close(*sender_));
  constexpr Duration kWait = 300ms;
  const TimePoint begin = now();
  std::atomic<bool> over{false};
  Duration longestLook{};
  std::thread other([&] {
    while (!over) {
      const TimePoint look = now();
      (void)pairs_[0]->postedAhead();
      longestLook = std::max(longestLook, now() - look);
    }
  });
  EXPECT_FALSE(pairs_[0]->drain(begin + kWait));
  over = true;
  other.join();
  EXPECT_GE(now() - begin, kWait);
  EXPECT_LT(longestLook, kWait / 2) << "the lock was held";
  {
    const auto anew = Pair::open(pairs_[0], 8, /*sends=*/true);
    EXPECT_TRUE(pairs_[0]->drain(now() + kLong, /*unused=*/true)) << "somebody uses it again";
    EXPECT_TRUE(pairs_[0]->close(*anew));
  }
  EXPECT_FALSE(pairs_[0]->failed());
  std::int64_t to = -1;
  const auto came = await(1, receive(to));
  ASSERT_TRUE(came.ok() && *came);
  EXPECT_EQ(to, value);
  over = false;
  std::thread served([&] {
    while (!over) (void)pairs_[1]->tend(now());
  });
  EXPECT_TRUE(pairs_[0]->drain(now() + kLong));
  over = true;
  served.join();
  (void)pairs_[1]->close(*receiver_);
}

}  // namespace
}  // namespace faultline::nccl

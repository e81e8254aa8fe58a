#include "resilient_ccl/nccl/eager_receives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

namespace faultline::nccl {
namespace {

using Claim = EagerReceives::Claim;

constexpr Bytes kShort = 100;
constexpr channel::StreamKey kStream{.communicator = 5, .stream = 3};

channel::MessageKey message(std::uint32_t sequence) {
  return {.communicator = kStream.communicator, .sequence = sequence, .stream = kStream.stream};
}

class EagerReceivesTest : public ::testing::Test {
 protected:
  /// Messages 0.. by receives of NCCL's, until some are posted ahead.
  void warmUp() {
    for (int i = 0; i < EagerReceives::kStreak; ++i) ask(kShort);
    ASSERT_EQ(posts_.size(), EagerReceives::kAhead);
  }
  /// One that nothing was posted ahead for comes.
  void ask(Bytes length) {
    ASSERT_EQ(eager_.claim(message(asked_), wanted()).claim, Claim::kNone);
    ++asked_;
    eager_.got(kStream, length);
    postAhead();
  }
  EagerReceives::Claimed claim() {
    const auto claimed = eager_.claim(message(asked_), wanted());
    ++asked_;
    postAhead();
    return claimed;
  }
  void postAhead() {
    while (const auto post = eager_.next(kStream, asked_)) {
      posts_[post->key.sequence] = *post;
      eager_.posted(post->number, 1000 + post->number);
    }
  }
  EagerReceives::Wanted wanted() {
    return {.token = asked_, .data = target_.data(), .capacity = capacity_};
  }
  std::optional<EagerReceives::Arrived> comes(std::uint32_t sequence, Bytes length) {
    const EagerReceives::Post& post = posts_.at(sequence);
    std::fill_n(post.memory, length, static_cast<std::byte>(sequence));
    return eager_.arrived(post.number, length);
  }
  bool has(std::uint32_t sequence, Bytes length) const {
    return std::all_of(target_.begin(), target_.begin() + length,
                       [&](std::byte byte) { return byte == static_cast<std::byte>(sequence); });
  }

  EagerReceives eager_{kShort};
  std::uint32_t asked_ = 0;
  std::map<std::uint32_t, EagerReceives::Post> posts_;
  std::array<std::byte, 4 * kShort> target_{};
  Bytes capacity_ = 4 * kShort;
};

TEST_F(EagerReceivesTest, ArePostedAheadAfterAStreakOfShortMessagesOnly) {
  for (int i = 1; i < EagerReceives::kStreak; ++i) ask(kShort);
  ask(kShort + 1);
  for (int i = 1; i < EagerReceives::kStreak; ++i) ask(1);
  EXPECT_TRUE(posts_.empty());
  ask(0);
  ASSERT_EQ(posts_.size(), EagerReceives::kAhead);
  EXPECT_EQ(posts_.begin()->first, asked_);
  EXPECT_EQ(posts_.begin()->second.capacity, kShort);
}

TEST_F(EagerReceivesTest, WhatHasComeIsTakenAtOnce) {
  warmUp();
  const std::uint32_t first = asked_;
  EXPECT_FALSE(comes(first, 70));
  const auto claimed = claim();
  EXPECT_EQ(claimed.claim, Claim::kArrived);
  EXPECT_EQ(claimed.arrived.wanted.token, first);
  EXPECT_EQ(claimed.arrived.length, 70);
  EXPECT_TRUE(claimed.arrived.failure.ok());
  EXPECT_TRUE(has(first, 70));
  EXPECT_EQ(eager_.taken(), 1U);
  EXPECT_TRUE(posts_.contains(first + EagerReceives::kAhead)) << "there are enough again";
}

TEST_F(EagerReceivesTest, WhatComesIsTakenByWhoWaitsInWhateverOrder) {
  warmUp();
  const std::uint32_t first = asked_;
  for (int i = 0; i < 3; ++i) {
    const auto claimed = claim();
    EXPECT_EQ(claimed.claim, Claim::kWaits);
    EXPECT_EQ(claimed.slot, 1000 + posts_.at(first + i).number);
  }
  for (const std::uint32_t sequence : {first + 2, first, first + 1}) {
    const auto arrived = comes(sequence, 30);
    ASSERT_TRUE(arrived);
    EXPECT_EQ(arrived->wanted.token, sequence);
    EXPECT_TRUE(has(sequence, 30));
  }
}

TEST_F(EagerReceivesTest, AMessageThatDoesNotFitIsReceivedAsUsual) {
  warmUp();
  const std::uint32_t first = asked_;
  EXPECT_FALSE(eager_.refused(posts_.at(first).number)) << "nobody waits";
  EXPECT_EQ(claim().claim, Claim::kNone);
  EXPECT_EQ(claim().claim, Claim::kWaits);
  const auto refused = eager_.refused(posts_.at(first + 1).number);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->key, message(first + 1));
  EXPECT_EQ(refused->wanted.token, first + 1);
  const std::size_t before = posts_.size();
  EXPECT_EQ(claim().claim, Claim::kWaits) << "those that are there are used";
  EXPECT_EQ(posts_.size(), before) << "and no more are posted";
}

TEST_F(EagerReceivesTest, AMessageThatIsTooLongForNcclsReceiveFailsIt) {
  warmUp();
  capacity_ = 10;
  const std::uint32_t first = asked_;
  EXPECT_FALSE(comes(first, 11));
  const auto claimed = claim();
  EXPECT_EQ(claimed.claim, Claim::kArrived);
  EXPECT_EQ(claimed.arrived.failure.code(), Code::kInvalidArgument);
  EXPECT_EQ(claimed.arrived.length, 0);
  EXPECT_EQ(target_[0], std::byte{});
}

TEST_F(EagerReceivesTest, WhatEndsFailsWhoWaits) {
  warmUp();
  const std::uint32_t first = asked_;
  EXPECT_EQ(claim().claim, Claim::kWaits);
  const auto ended = eager_.ended(posts_.at(first).number, Status(Code::kAborted, "closed"));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->wanted.token, first);
  EXPECT_EQ(ended->failure.code(), Code::kAborted);
  EXPECT_FALSE(eager_.ended(posts_.at(first + 1).number, Status(Code::kAborted, "closed")));
  EXPECT_EQ(claim().claim, Claim::kNone) << "the fabric says so again";
}

TEST_F(EagerReceivesTest, WhatIsForgottenKeepsItsMemoryUntilItEnds) {
  warmUp();
  const std::uint32_t first = asked_;
  EXPECT_FALSE(comes(first, 1));
  eager_.forget(kStream.communicator);
  std::byte* const stillWritten = posts_.at(first + 1).memory;
  const std::uint32_t number = posts_.at(first + 1).number;
  asked_ = 0;
  posts_.clear();
  warmUp();  // another connection with that number
  for (const auto& [sequence, post] : posts_) EXPECT_NE(post.memory, stillWritten);
  EXPECT_FALSE(eager_.ended(number, Status(Code::kAborted, "closed")));
  EXPECT_EQ(claim().claim, Claim::kWaits);
  EXPECT_EQ(posts_.rbegin()->second.memory, stillWritten) << "used again";
  eager_.forget(kStream.communicator);
  for (const auto& [sequence, post] : posts_) {
    EXPECT_FALSE(eager_.ended(post.number, Status(Code::kAborted, "closed")));
  }
  // Of the first connection, whose receives never ended here.
  EXPECT_EQ(eager_.open(), EagerReceives::kAhead - 2);
}

TEST_F(EagerReceivesTest, StreamsHaveTheirOwn) {
  warmUp();
  const channel::StreamKey other{.communicator = kStream.communicator, .stream = 4};
  EXPECT_FALSE(eager_.next(other, 0));
  channel::MessageKey key = message(asked_);
  key.stream = other.stream;
  EXPECT_EQ(eager_.claim(key, wanted()).claim, Claim::kNone);
}

TEST_F(EagerReceivesTest, WithoutShortMessagesThereAreNone) {
  EagerReceives none(0);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(none.claim(message(i), wanted()).claim, Claim::kNone);
    none.got(kStream, 0);
    EXPECT_FALSE(none.next(kStream, i + 1));
  }
}

}  // namespace
}  // namespace faultline::nccl

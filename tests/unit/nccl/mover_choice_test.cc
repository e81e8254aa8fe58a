#include "resilient_ccl/nccl/mover_choice.h"

#include <gtest/gtest.h>

#include <array>

namespace faultline::nccl {
namespace {

using transport::Mover;

class MoverChoiceTest : public ::testing::Test {
 protected:
  static constexpr Bytes kSmall = 1000;
  MoverChoice choice_{kSmall};
  TimePoint time_{1h};
  std::array<int, MoverChoice::kFew + 1> connections_{};

  const void* connection(int i) const { return &connections_[i % connections_.size()]; }
  const void* ofFew(int i) const { return &connections_[i % MoverChoice::kFew]; }
};

TEST_F(MoverChoiceTest, ShortMessagesOfFewConnectionsAreMovedByTheCaller) {
  EXPECT_EQ(choice_.at(time_), Mover::kOwner);
  for (int i = 0; i < 100; ++i, time_ += 1us) {
    choice_.saw(ofFew(i), i % 3 == 0 ? kSmall : 0, time_);
    ASSERT_EQ(choice_.at(time_), Mover::kOwner);
  }
}

TEST_F(MoverChoiceTest, ALongMessageIsForThreadsAndWhatComesSoonAfterItToo) {
  choice_.saw(connection(0), kSmall + 1, time_);
  EXPECT_EQ(choice_.at(time_), Mover::kCommonThread);
  choice_.saw(connection(0), kSmall, time_ + MoverChoice::kCalm - 1ns);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kCalm - 1ns), Mover::kCommonThread);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kCalm), Mover::kOwner);
}

TEST_F(MoverChoiceTest, LongMessagesHaveThreadsOfTheirOwn) {
  constexpr Bytes kLong = MoverChoice::kLong;
  choice_.saw(connection(0), kLong - 1, time_);
  EXPECT_EQ(choice_.at(time_), Mover::kCommonThread);
  choice_.saw(connection(0), kLong, time_);
  EXPECT_EQ(choice_.at(time_), Mover::kThread);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kCalm - 1ns), Mover::kThread);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kCalm), Mover::kOwner) << "as after any other";
  const TimePoint end = time_ + MoverChoice::kCrowded;
  choice_.saw(connection(0), kLong - 1, end - 1ns);
  EXPECT_EQ(choice_.at(end - 1ns), Mover::kThread);
  EXPECT_EQ(choice_.at(end), Mover::kCommonThread);
  EXPECT_EQ(choice_.at(end - 1ns + MoverChoice::kCalm), Mover::kOwner);
}

TEST_F(MoverChoiceTest, WhatIsShortIsNotLong) {
  MoverChoice choice(2 * MoverChoice::kLong);
  choice.saw(connection(0), 2 * MoverChoice::kLong, time_);
  EXPECT_EQ(choice.at(time_), Mover::kOwner);
  choice.saw(connection(0), 2 * MoverChoice::kLong + 1, time_);
  EXPECT_EQ(choice.at(time_), Mover::kThread);
}

TEST_F(MoverChoiceTest, MoreConnectionsThatHaveMessagesTogetherAreForThreads) {
  for (int i = 0; i < MoverChoice::kFew; ++i) choice_.saw(connection(i), 1, time_);
  choice_.saw(connection(MoverChoice::kFew), 1, time_ + MoverChoice::kTogether - 1ns);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kTogether), Mover::kCommonThread);
}

TEST_F(MoverChoiceTest, ConnectionsThatHaveMessagesOneAfterTheOtherAreNot) {
  for (int i = 0; i < 30; ++i, time_ += MoverChoice::kTogether / MoverChoice::kFew) {
    choice_.saw(connection(i), 1, time_);
    ASSERT_EQ(choice_.at(time_), Mover::kOwner);
  }
}

TEST_F(MoverChoiceTest, WhileThereIsMuchItStaysWithThreads) {
  for (int i = 0; i < 100; ++i, time_ += MoverChoice::kTogether / (MoverChoice::kFew + 1)) {
    choice_.saw(connection(i), 1, time_);
    if (i < MoverChoice::kFew) continue;
    ASSERT_EQ(choice_.at(time_), Mover::kCommonThread);
  }
  const TimePoint last = time_ - MoverChoice::kTogether / (MoverChoice::kFew + 1);
  choice_.saw(connection(0), kSmall + 1, last);  // shortens nothing
  EXPECT_EQ(choice_.at(last + MoverChoice::kCrowded - 1ns), Mover::kCommonThread);
  EXPECT_EQ(choice_.at(last + MoverChoice::kCrowded), Mover::kOwner);
}

TEST_F(MoverChoiceTest, AConnectionThatIsQuietMakesRoomForAnother) {
  std::array<int, 50> many{};
  for (const int& one : many) {
    choice_.saw(&one, 1, time_);
    ASSERT_EQ(choice_.at(time_), Mover::kOwner);
    time_ += MoverChoice::kTogether;
  }
  for (int i = 0; i <= MoverChoice::kFew; ++i) choice_.saw(&many[i], 1, time_);
  EXPECT_EQ(choice_.at(time_), Mover::kCommonThread);
}

}  // namespace
}  // namespace faultline::nccl

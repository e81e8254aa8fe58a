#include "resilient_ccl/nccl/mover_choice.h"

#include <gtest/gtest.h>

namespace faultline::nccl {
namespace {

using transport::Mover;

class MoverChoiceTest : public ::testing::Test {
 protected:
  static constexpr Bytes kSmall = 1000;
  MoverChoice choice_{kSmall};
  TimePoint time_{1h};
  int one_ = 0, other_ = 0;  // connections
};

TEST_F(MoverChoiceTest, ShortMessagesOfOneConnectionAreMovedByTheCaller) {
  EXPECT_EQ(choice_.at(time_), Mover::kOwner);
  for (int i = 0; i < 100; ++i, time_ += 1us) {
    choice_.saw(&one_, i % 2 == 0 ? kSmall : 0, time_);
    ASSERT_EQ(choice_.at(time_), Mover::kOwner);
  }
}

TEST_F(MoverChoiceTest, ALongMessageIsForThreadsAndWhatComesSoonAfterItToo) {
  choice_.saw(&one_, kSmall + 1, time_);
  EXPECT_EQ(choice_.at(time_), Mover::kThread);
  choice_.saw(&one_, kSmall, time_ + MoverChoice::kCalm - 1ns);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kCalm - 1ns), Mover::kThread);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kCalm), Mover::kOwner);
}

TEST_F(MoverChoiceTest, ConnectionsThatHaveMessagesTogetherAreForThreads) {
  choice_.saw(&one_, 1, time_);
  choice_.saw(&other_, 1, time_ + MoverChoice::kTogether - 1ns);
  EXPECT_EQ(choice_.at(time_ + MoverChoice::kTogether), Mover::kThread);
}

TEST_F(MoverChoiceTest, ConnectionsThatHaveMessagesOneAfterTheOtherAreNot) {
  for (int i = 0; i < 10; ++i, time_ += MoverChoice::kTogether) {
    choice_.saw(i % 2 == 0 ? &one_ : &other_, 1, time_);
    ASSERT_EQ(choice_.at(time_), Mover::kOwner);
  }
}

TEST_F(MoverChoiceTest, WhileThereIsMuchItStaysWithThreads) {
  for (int i = 0; i < 100; ++i, time_ += MoverChoice::kTogether / 2) {
    choice_.saw(i % 2 == 0 ? &one_ : &other_, 1, time_);
    if (i == 0) continue;
    ASSERT_EQ(choice_.at(time_), Mover::kThread);
  }
  time_ += MoverChoice::kCalm;
  EXPECT_EQ(choice_.at(time_), Mover::kOwner);
}

}  // namespace
}  // namespace faultline::nccl

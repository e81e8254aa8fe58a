#include "resilient_ccl/comm/roll_call.h"

#include <gtest/gtest.h>

#include <numeric>

#include "resilient_ccl/channel/wire.h"

namespace faultline::comm {
namespace {

constexpr TimePoint kBegin{1s};

TEST(RollCallTest, WhoHasNotBegunTheCollectiveIsMissing) {
  RollCall roll(1, 7, {0, 1, 2}, kBegin);
  roll.present(0, 8);
  roll.present(2, 9);
  EXPECT_FALSE(roll.over(kBegin));
  roll.present(1, 7);  // 0 to 6
  EXPECT_TRUE(roll.over(kBegin));
  EXPECT_EQ(roll.result(), "rank(s) 1 have not called it, rank(s) 0, 2 wait");
}

TEST(RollCallTest, WhoSaysNothingIsNotWaitedForWithoutEnd) {
  RollCall roll(1, 7, {0, 1, 2}, kBegin);
  roll.present(0, 8);
  roll.present(5, 8);  // not a member
  EXPECT_FALSE(roll.over(kBegin + RollCall::kAnswerTime - 1ns));
  EXPECT_TRUE(roll.over(kBegin + RollCall::kAnswerTime));
  EXPECT_EQ(roll.result(), "rank(s) 1, 2 do not answer, rank(s) 0 wait");
}

TEST(RollCallTest, WhatIsSaidOfThousandsFitsInAWordToTheOthers) {
  std::vector<int> members(60'000);
  std::iota(members.begin(), members.end(), 0);
  RollCall roll(1, 7, members, kBegin);
  for (const int member : members) {
    if (member % 3 != 0) roll.present(member, member % 3 == 1 ? 7 : 8);
  }
  constexpr std::size_t kOpening =
      70;  // "rank 0: collective 7 of communicator 1 is not done within"
  EXPECT_TRUE(
      roll.result()
          .substr(0, channel::Record::kMaxPayload - kOpening)
          .starts_with("rank(s) 1, 4, 7, 10 and 19996 more have not called it, rank(s) 0, 3, "
                       "6, 9 and 19996 more do not answer"))
      << roll.result();
}

}  // namespace
}  // namespace faultline::comm

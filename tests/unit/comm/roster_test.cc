#include "resilient_ccl/comm/roster.h"

#include <gtest/gtest.h>

namespace faultline::comm {
namespace {

// Every state of three and four other processes, told apart digit by digit.
TEST(RosterTest, NoTwoGroupsThatMeetNobodyOfEachOtherMayBothGoOn) {
  for (const int size : {2, 3, 4, 5}) {
    const int all = 1 << size;
    for (int dead = 0; dead < all; ++dead) {
      // What is gone is gone for all; the others are split in two that do not hear of each other.
      for (int one = 0; one < all; ++one) {
        if ((one & dead) != 0) continue;
        const auto mayGoOn = [&](int group) {
          int first = 0;
          while ((group >> first & 1) == 0) ++first;
          Roster roster(first, size);
          for (int rank = 0; rank < size; ++rank) {
            if (group >> rank & 1) roster.here(rank);
            if (dead >> rank & 1) roster.gone(rank);
          }
          return roster.mayGoOn();
        };
        const int other = all - 1 - dead - one;
        if (one == 0) continue;
        if (other == 0) {
          EXPECT_TRUE(mayGoOn(one)) << one << dead;
        } else {
          EXPECT_FALSE(mayGoOn(one) && mayGoOn(other)) << one << dead;
        }
      }
    }
  }
}

TEST(RosterTest, WhoIsSilentIsWaitedForAndWhoLeavesIsSilentAgain) {
  Roster roster(1, 3);
  EXPECT_FALSE(roster.complete());
  EXPECT_EQ(roster.present(), std::vector<int>{1});
  EXPECT_FALSE(roster.mayGoOn());
  EXPECT_NE(roster.objection().find("rank(s) 1 are here"), std::string::npos);
  EXPECT_NE(roster.objection().find("rank(s) 0, 2 are silent"), std::string::npos);
  roster.here(0);
  EXPECT_TRUE(roster.mayGoOn()) << "two of three";
  EXPECT_FALSE(roster.complete()) << "but the third may come yet";
  roster.left(0);
  EXPECT_FALSE(roster.mayGoOn());
  roster.gone(0);
  roster.gone(2);
  EXPECT_TRUE(roster.complete() && roster.mayGoOn());
  EXPECT_EQ(roster.present(), std::vector<int>{1});
}

}  // namespace
}  // namespace faultline::comm

#include "resilient_ccl/comm/quickest.h"

#include <gtest/gtest.h>

#include <vector>

namespace faultline::comm {
namespace {

Quickest of(const std::vector<double>& times) {
  Quickest quickest;
  for (const double time : times) quickest.add(time);
  return quickest;
}

TEST(QuickestTest, OneTimeIsNotConfirmed) {
  EXPECT_FALSE(of({}).confirmed());
  EXPECT_FALSE(of({1}).confirmed());
}

TEST(QuickestTest, TwoThatAreAsGoodAsEqualConfirmEachOtherInAnyOrder) {
  for (const auto& times : std::vector<std::vector<double>>{
           {1, 1.04, 3}, {3, 1.04, 1}, {1.04, 3, 1}, {3, 1, 1.04}, {1, 3, 1.04}, {1.04, 1, 3}}) {
    EXPECT_EQ(of(times).first, 1);
    EXPECT_EQ(of(times).second, 1.04);
    EXPECT_TRUE(of(times).confirmed());
  }
}

TEST(QuickestTest, TwoSlowOnesConfirmNothingOnceThereIsAQuickerOne) {
  EXPECT_TRUE(of({2, 2}).confirmed());
  EXPECT_FALSE(of({2, 2, 1}).confirmed());
  EXPECT_EQ(of({2, 2, 1}).first, 1);
  EXPECT_TRUE(of({2, 2, 1, 1}).confirmed());
}

}  // namespace
}  // namespace faultline::comm

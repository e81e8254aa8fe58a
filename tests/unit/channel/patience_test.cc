#include "resilient_ccl/channel/patience.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace faultline::channel {
namespace {

constexpr Duration kLeast = 10ms;

TEST(PatienceTest, AQuickRailIsSuspectedAfterTheLeast) {
  Patience patience;
  EXPECT_EQ(patience.suspectAfter(kLeast), kLeast);
  for (int i = 0; i < 100; ++i) patience.heardAfter(2ms, kLeast);
  EXPECT_EQ(patience.suspectAfter(kLeast), kLeast);
}

TEST(PatienceTest, ARailThatAlwaysTakesLongIsNotSuspectedForIt) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Patience patience;
    const auto gap = [&] { return Duration(20ms) + Duration(random.below(20'000'000)); };
    for (int i = 0; i < 50; ++i) patience.heardAfter(gap(), kLeast);
    int suspected = 0;
    for (int i = 0; i < 200; ++i) {
      const Duration next = gap();
      suspected += next >= patience.suspectAfter(kLeast) ? 1 : 0;
      patience.heardAfter(next, kLeast);
    }
    EXPECT_LE(suspected, 2);
    EXPECT_LE(patience.suspectAfter(kLeast), 80ms) << "twice the longest gap";
  }
}

TEST(PatienceTest, OneOutageIsForgotten) {
  Patience patience;
  for (int i = 0; i < 20; ++i) patience.heardAfter(1ms, kLeast);
  patience.heardAfter(5s, kLeast);
  EXPECT_LE(patience.suspectAfter(kLeast), 3 * kLeast);
  for (int i = 0; i < 12; ++i) patience.heardAfter(1ms, kLeast);
  EXPECT_EQ(patience.suspectAfter(kLeast), kLeast);
}

TEST(PatienceTest, NothingMakesItLongerThanTheMost) {
  Patience patience;
  for (int i = 0; i < 100; ++i) patience.heardAfter(1h, kLeast);
  EXPECT_EQ(patience.suspectAfter(kLeast), Patience::kMost * kLeast);
}

}  // namespace
}  // namespace faultline::channel

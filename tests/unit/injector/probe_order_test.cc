#include "injector/faults/probe_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"

namespace faultline::injector {
namespace {

constexpr Duration kLeast = 5ms;
const TimePoint kBegin{};

TEST(ProbeOrder, OneThatIsOvertakenAndDelayedIsLate) {
  ProbeOrder order(3, kLeast);
  for (int i = 0; i < 3; ++i) order.send(kBegin + i * 1ms);
  order.hear(1, kBegin + 2ms);
  order.hear(2, kBegin + 3ms);
  order.hear(0, kBegin + 5ms);
  EXPECT_EQ(order.arrived(), 3);
  EXPECT_EQ(order.late(), 1);
  EXPECT_EQ(order.passed(), 0);
  EXPECT_EQ(order.delayed(), 4ms);
}

// Two processors, each of which hands on its own in order.
TEST(ProbeOrder, OneThatIsOvertakenForLessIsNotLate) {
  ProbeOrder order(2, kLeast);
  order.send(kBegin);
  order.send(kBegin);
  order.hear(1, kBegin + 1ms);
  order.hear(0, kBegin + kLeast - 1ns);
  EXPECT_EQ(order.arrived(), 2);
  EXPECT_EQ(order.late(), 0);
  EXPECT_EQ(order.passed(), 1);
  EXPECT_EQ(order.delayed(), Duration{});
}

// A slow link delays all; that is not out of order.
TEST(ProbeOrder, OneThatIsDelayedInOrderIsNotLate) {
  ProbeOrder order(2, kLeast);
  order.send(kBegin);
  order.send(kBegin);
  order.hear(0, kBegin + 10 * kLeast);
  order.hear(1, kBegin + 10 * kLeast);
  EXPECT_EQ(order.late(), 0);
}

TEST(ProbeOrder, ThoseBehindTheJudgedOnesOnlyOvertake) {
  ProbeOrder order(1, kLeast);
  order.send(kBegin);
  order.send(kBegin);
  EXPECT_EQ(order.sent(), 1);
  order.hear(1, kBegin + 2 * kLeast);
  EXPECT_EQ(order.arrived(), 0);
  order.hear(0, kBegin + 2 * kLeast);
  EXPECT_EQ(order.late(), 1);
}

TEST(ProbeOrder, KnowsHowLongADelayIsForWhoLooksNowAndThen) {
  ProbeOrder order(3, kLeast);
  EXPECT_EQ(order.delayedByLooks(), Duration{});
  // Sent at 0, taken at 1, goes on at 6; at 6: 7, 30; at 7: 30, 35.
  for (const int at : {0, 1, 6, 7, 30, 35}) {
    order.look(kBegin + at * 1ms);
    if (at == 0 || at == 6 || at == 7) order.send(kBegin + at * 1ms);
  }
  EXPECT_EQ(order.delayedByLooks(), 24ms) << "the median of 6, 24 and 28";
}

TEST(ProbeOrder, OneThatIsStillHeldSaysNothingOfTheDelay) {
  ProbeOrder order(2, kLeast);
  for (const int at : {0, 1, 6, 7}) {
    order.look(kBegin + at * 1ms);
    if (at == 0 || at == 6) order.send(kBegin + at * 1ms);
  }
  EXPECT_EQ(order.delayedByLooks(), 6ms);
}

// Whatever two processors do with their own within less than the delay, exactly those that were
// held up are late.
TEST(ProbeOrder, CountsWhatIsHeldUpAmongProcessorsThatAreNotEquallyQuick) {
  constexpr int kProbes = 500;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    ProbeOrder order(kProbes, kLeast);
    std::vector<std::pair<TimePoint, int>> arrivals;
    int held_up = 0;
    for (int i = 0; i < kProbes + 100; ++i) {
      const TimePoint sent = kBegin + i * 100us;
      order.send(sent);
      const bool held = i < kProbes && random.below(10) == 0;
      held_up += held ? 1 : 0;
      const Duration on_the_way = std::chrono::microseconds(random.below(4000));
      arrivals.push_back({sent + on_the_way + (held ? kLeast : Duration{}), i});
    }
    std::ranges::sort(arrivals);
    for (const auto& [at, number] : arrivals) order.hear(number, at);
    EXPECT_EQ(order.arrived(), kProbes) << "seed " << seed;
    EXPECT_EQ(order.late(), held_up) << "seed " << seed;
  }
}

}  // namespace
}  // namespace faultline::injector

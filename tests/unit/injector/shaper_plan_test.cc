#include "injector/netlink/shaper_plan.h"

#include <gtest/gtest.h>

namespace faultline::netlink {
namespace {

TEST(ShaperPlanTest, BurstIsTwoMillisecondsButNeverBelow16KiB) {
  EXPECT_EQ(planShaper(400'000'000).bulk.burst, 100'000);
  EXPECT_EQ(planShaper(4'000'000).bulk.burst, 16 * 1024);
  EXPECT_EQ(planShaper(100'000'000'000).bulk.burst, 25'000'000);
}

TEST(ShaperPlanTest, ControlIsATenthButNeverBelow40Mbit) {
  EXPECT_EQ(planShaper(1'000'000).control.rate, 40'000'000);
  EXPECT_EQ(planShaper(400'000'000).control.rate, 40'000'000);
  EXPECT_EQ(planShaper(10'000'000'000).control.rate, 1'000'000'000);
  EXPECT_EQ(planShaper(1'000'000).control.burst, planShaper(10'000'000'000).control.burst);
}

TEST(ShaperPlanTest, TicksAreTheTimeOfABurst) {
  // 100 kB at 400 Mbit/s take 2 ms = 31250 ticks of 64 ns.
  EXPECT_EQ(burstTicks(planShaper(400'000'000).bulk), 31'250u);
  // At the slowest rate the burst's time still fits the kernel's 32 bits.
  EXPECT_EQ(burstTicks({16'000, 16 * 1024}), 128'000'000u);
  EXPECT_EQ(burstTicks({1, Bytes{1} << 40}), 0xffff'ffffu);
}

}  // namespace
}  // namespace faultline::netlink

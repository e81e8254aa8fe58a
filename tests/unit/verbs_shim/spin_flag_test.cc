#include "injector/verbs/shim/spin_flag.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace faultline::testing {
namespace {

using injector::verbs::shim::SpinFlag;

TEST(SpinFlagTest, OneAtATime) {
  SpinFlag flag;
  constexpr int kThreads = 3;
  constexpr long kEach = 30'000;
  long count = 0;  // no atomic: what two threads did at once would be lost
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (long i = 0; i < kEach; ++i) {
        const std::lock_guard lock(flag);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kEach);
  EXPECT_TRUE(flag.try_lock());
  EXPECT_FALSE(flag.try_lock());
  std::thread waits([&] {
    const std::lock_guard lock(flag);
    ++count;
  });
  EXPECT_EQ(count, kThreads * kEach) << "it is taken";
  flag.unlock();
  waits.join();
  EXPECT_EQ(count, kThreads * kEach + 1);
}

}  // namespace
}  // namespace faultline::testing

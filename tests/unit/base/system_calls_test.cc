#include "base/system_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace faultline {
namespace {

TEST(SystemCallsTest, OfAllThreadsAreCountedRunningOrGone) {
  const std::uint64_t before = systemCallsMade();
  countSystemCall();
  std::thread([] {
    for (int i = 0; i < 10; ++i) countSystemCall();
  }).join();
  std::atomic<bool> counted{false}, stop{false};
  std::thread running([&] {
    for (int i = 0; i < 100; ++i) countSystemCall();
    counted = true;
    counted.notify_all();
    stop.wait(false);
  });
  counted.wait(false);
  EXPECT_EQ(systemCallsMade() - before, 111u);
  stop = true;
  stop.notify_all();
  running.join();
  EXPECT_EQ(systemCallsMade() - before, 111u);
}

}  // namespace
}  // namespace faultline

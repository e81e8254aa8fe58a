#include "harness/workload/resource_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/system_calls.h"
#include "base/unique_fd.h"

namespace faultline::workload {
namespace {

TEST(ResourceWatchTest, AProcessSeesWhatItOpensAndTouches) {
  const auto before = sampleResources();
  ASSERT_TRUE(before);
  constexpr std::size_t kBytes = 32 << 20;
  const UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd second(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char> touched(kBytes, 1);
  // A compiler may leave out memory that nobody looks at.
  asm volatile("" : : "r"(touched.data()) : "memory");
  const auto after = sampleResources();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->files, before->files + 2);
  EXPECT_GE(after->memory, before->memory + static_cast<std::int64_t>(touched.size()) * 9 / 10);
}

TEST(ResourceWatchTest, TellsTheFirstTheLastAndTheMostOfEach) {
  ResourceWatch watch;
  EXPECT_FALSE(watch.use()) << "nothing was seen";
  watch.add({.memory = 100, .files = 5});
  watch.add({.memory = 300, .files = 4});
  watch.add({.memory = 200, .files = 9});
  watch.add({.memory = 250, .files = 6});
  watch.spend({.cpu = 3ms, .systemCalls = 5});
  watch.spend({.cpu = 4ms, .systemCalls = 6});
  for (const std::uint64_t bytes : {1000, 1500, 3000}) watch.sent(bytes);
  const auto use = watch.use();
  ASSERT_TRUE(use);
  EXPECT_EQ(use->memoryStart, 100);
  EXPECT_EQ(use->memoryEnd, 250);
  EXPECT_EQ(use->memoryMax, 300);
  EXPECT_EQ(use->filesStart, 5);
  EXPECT_EQ(use->filesEnd, 6);
  EXPECT_EQ(use->filesMax, 9);
  EXPECT_EQ(use->cpu, 7ms);
  EXPECT_EQ(use->systemCalls, 11);
  EXPECT_EQ(use->sent, 2000);
}

TEST(ResourceWatchTest, EffortIsOfAllThreads) {
  const Effort before = effortSoFar();
  std::thread([] {
    countSystemCall();
    const TimePoint end = now() + 20ms;
    while (now() < end) {
    }
  }).join();
  const Effort spent = effortSoFar() - before;
  EXPECT_GT(spent.cpu, Duration::zero());
  EXPECT_EQ(spent.systemCalls, 1u);
}

}  // namespace
}  // namespace faultline::workload

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
  nlohmann::json message;
  watch.addTo(message);
  EXPECT_TRUE(message.empty()) << "nothing was seen";
  watch.add({.memory = 100, .files = 5});
  watch.add({.memory = 300, .files = 4});
  watch.add({.memory = 200, .files = 9});
  watch.add({.memory = 250, .files = 6});
  watch.spend({.cpu = 3ms, .systemCalls = 5});
  watch.spend({.cpu = 4ms, .systemCalls = 6});
  for (const std::uint64_t bytes : {1000, 1500, 3000}) watch.sent(bytes);
  watch.addTo(message);
  EXPECT_EQ(message["resources"], nlohmann::json({{"memory_start", 100},
                                                  {"memory_end", 250},
                                                  {"memory_max", 300},
                                                  {"files_start", 5},
                                                  {"files_end", 6},
                                                  {"files_max", 9},
                                                  {"cpu_ms", 7.0},
                                                  {"system_calls", 11},
                                                  {"sent", 2000}}));
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

#include "harness/workload/resource_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

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
  watch.addTo(message);
  EXPECT_EQ(message["resources"], nlohmann::json({{"memory_start", 100},
                                                  {"memory_end", 250},
                                                  {"memory_max", 300},
                                                  {"files_start", 5},
                                                  {"files_end", 6},
                                                  {"files_max", 9}}));
}

}  // namespace
}  // namespace faultline::workload

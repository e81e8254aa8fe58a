#include "harness/launch/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace faultline::launch {
namespace {

/// For each descriptor: whether it is open where one that was spawned expects it, and no other is.
int countWrongDescriptors() {
  constexpr int kMost = 256;
  int wrong = 0;
  for (int fd = 0; fd < kMost; ++fd) {
    const bool open = ::fcntl(fd, F_GETFD) >= 0;
    wrong += open != (fd <= kMessagesFd) ? 1 : 0;
  }
  return wrong;
}

TEST(ProcessTest, AChildMayDoAPartOfThisProgramWithNothingOpenButWhatItIsGiven) {
  const UniqueFd another(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnOptions options;
  options.body = countWrongDescriptors;
  auto child = Process::spawn(options);
  ASSERT_TRUE(child.ok()) << child.status().message();
  const auto ended = child->waitFor(20s);
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_TRUE(ended->ok()) << ended->toString();
}

TEST(ProcessTest, WithNothingToDoItIsAMistake) {
  EXPECT_EQ(Process::spawn({}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::launch

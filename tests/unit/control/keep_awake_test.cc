#include "harness/control/keep_awake.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

/// The most microseconds that leaving an idle state may take, of all who ask for it.
std::optional<std::int32_t> allowed() {
  const UniqueFd device(open("/dev/cpu_dma_latency", O_RDONLY | O_CLOEXEC));
  std::int32_t microseconds = -1;
  if (!device || read(device.get(), &microseconds, sizeof microseconds) != sizeof microseconds) {
    return std::nullopt;
  }
  return microseconds;
}

TEST(KeepAwakeTest, ItLastsAsLongAsTheFileIsOpen) {
  const auto before = allowed();
  Result<UniqueFd> held = keepProcessorsAwake();
  if (!held.ok()) {
    EXPECT_THAT(held.status().message(), HasSubstr("keep_awake: off"));
    GTEST_SKIP() << held.status().message();
  }
  if (before == 0) GTEST_SKIP() << "somebody else keeps the processors awake";
  EXPECT_EQ(allowed(), 0);
  held->reset();
  EXPECT_EQ(allowed(), before);
}

}  // namespace
}  // namespace faultline::run

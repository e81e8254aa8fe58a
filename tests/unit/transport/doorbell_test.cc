#include "resilient_ccl/transport/doorbell.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace faultline::transport {
namespace {

TEST(DoorbellTest, RingsOnceForEachTimeItWasArmed) {
  Doorbell bell;
  ASSERT_TRUE(bell.open().ok());
  const auto rings = [&] {
    pollfd waiting{bell.fd(), POLLIN, 0};
    return poll(&waiting, 1, 0) == 1;
  };
  bell.ring();
  EXPECT_FALSE(rings()) << "nobody sleeps: a system call for nothing";
  bell.arm();
  EXPECT_FALSE(rings());
  bell.ring();
  EXPECT_TRUE(rings());
  bell.clear();
  bell.ring();
  EXPECT_FALSE(rings()) << "the sleeper is awake already";
  bell.arm();
  bell.disarm();
  bell.ring();
  EXPECT_FALSE(rings());
}

}  // namespace
}  // namespace faultline::transport

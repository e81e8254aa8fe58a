#include <sys/socket.h>

#include <cstdint>

#include "tests/netns/fabric/job.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

// What the link tells a rail that is full comes to its socket, whoever drives it.

namespace faultline::test {
namespace {

/// Sockets of this process with a pace of their own.
int pacedSockets() {
  constexpr int kMostFiles = 1024;
  int count = 0;
  for (int fd = 0; fd < kMostFiles; ++fd) {
    std::uint64_t most = 0;
    socklen_t size = sizeof(most);
    if (getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &most, &size) != 0) continue;
    if (most != ~std::uint64_t{0}) ++count;
  }
  return count;
}

class PaceTest : public NetnsTest, public ::testing::WithParamInterface<int> {};

TEST_P(PaceTest, BothEndsOfARailThatIsFullArePaced) {
  const auto cluster = netns::Cluster::create({.nodes = 2, .rails = 1, .rail_rate = 400'000'000});
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  constexpr std::int64_t kLongReduction = 1 << 21;
  Job job(**cluster, kLongReduction, {.policy = "pull", .ioThreads = GetParam()});
  ASSERT_TRUE(job.awaitConnected());
  EXPECT_TRUE(pollUntil(kLong, [] { return pacedSockets() == 2; }));
  job.stop();
  EXPECT_EQ(job.wrongElements(), 0);
  EXPECT_TRUE(job.problems().empty());
}

INSTANTIATE_TEST_SUITE_P(Drivers, PaceTest, ::testing::Values(0, 1), [](const auto& driver) {
  return driver.param == 0 ? "TheCaller" : "IoThreads";
});

}  // namespace
}  // namespace faultline::test

#include <gtest/gtest.h>

#include "harness/site/netns/cluster_plan.h"
#include "injector/netlink/namespace.h"
#include "tests/netns/fabric/job.h"
#include "tests/support/netns_shell.h"
#include "tests/support/poll_until.h"

// A NIC of a running job whose device is taken away and made anew, or renamed.

namespace faultline::test {
namespace {

constexpr std::int64_t kAnewElements = 1 << 17;
constexpr int kNode = 1;

class NicAnewTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(
        cluster_, netns::Cluster::create({.nodes = 3, .rails = 2, .rail_rate = 400'000'000}));
    ASSERT_OK_AND_ASSIGN(elsewhere_, netlink::newNamespace());
  }

  /// All links over the rail, at both ends.
  static bool all(const Job& job, std::size_t links, bool back) {
    std::size_t count = 0;
    for (int rank = 0; rank < job.size(); ++rank) {
      const auto events = job.events(rank);
      count += back ? events.failbacks.size() : events.failovers.size();
    }
    return count >= links;
  }
  static constexpr std::size_t kLinkEnds = 4;  // of node 1's rail: to two others, at both ends

  static void expectSound(Job& job) {
    const std::int64_t reached = job.iterations();
    EXPECT_TRUE(pollUntil(kLong, [&] { return job.iterations() > reached + 3; }));
    job.stop();
    EXPECT_EQ(job.wrongElements(), 0);
    for (const std::string& problem : job.problems()) ADD_FAILURE() << problem;
  }

  std::unique_ptr<netns::Cluster> cluster_;
  UniqueFd elsewhere_;
};

/// With the number that it had, or with another one, to which no socket is bound.
class NicBackTest : public NicAnewTest, public ::testing::WithParamInterface<bool> {};

TEST_P(NicBackTest, ADeviceThatIsGoneAndComesBackWithAnotherNameIsTakenBack) {
  Job job(*cluster_, kAnewElements);
  ASSERT_TRUE(job.awaitConnected()) << (job.problems().empty() ? "" : job.problems()[0]);
  const int node = cluster_->nodeNamespace(kNode);
  runInNamespace(node, "ip link set rail0 netns " + placeOfNamespace(elsewhere_.get()));
  EXPECT_TRUE(pollUntil(kLong, [&] { return all(job, kLinkEnds, /*back=*/false); }));
  const int number = cluster_->railTarget(kNode, 0).nic.ifindex;
  if (GetParam()) {
    runInNamespace(node, fmt::format("ip link add other index {} type bridge", number));
  }
  runInNamespace(elsewhere_.get(), "ip link set rail0 name other0; ip link set other0 netns " +
                                       placeOfNamespace(node));
  runInNamespace(node, fmt::format("ip addr add {}/16 dev other0; ip link set other0 up",
                                   netns::railAddress(kNode, 0)));
  EXPECT_TRUE(pollUntil(kLong, [&] { return all(job, kLinkEnds, /*back=*/true); }));
  expectSound(job);
}

INSTANTIATE_TEST_SUITE_P(Numbers, NicBackTest, ::testing::Bool(), [](const auto& number) {
  return std::string(number.param ? "WithAnotherNumber" : "WithItsNumber");
});

TEST_F(NicAnewTest, ADeviceThatIsRenamedIsFollowed) {
  Job job(*cluster_, kAnewElements);
  ASSERT_TRUE(job.awaitConnected()) << (job.problems().empty() ? "" : job.problems()[0]);
  runInNamespace(cluster_->nodeNamespace(kNode),
                 "ip link set rail1 down; ip link set rail1 name net1; ip link set net1 up");
  EXPECT_TRUE(pollUntil(kLong, [&] { return all(job, kLinkEnds, /*back=*/true); }));
  expectSound(job);
}

}  // namespace
}  // namespace faultline::test

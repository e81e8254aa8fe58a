#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "harness/site/netns/cluster.h"
#include "injector/faults/registry.h"
#include "tests/netns/fabric/job.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

// Two ranks on each of two nodes share the node's NICs and talk to each other through shared
// memory. One NIC of node 1 fails and comes back.

namespace faultline::test {
namespace {

constexpr std::int64_t kMegaElements = 1 << 20;
constexpr int kNodes = 2, kPerNode = 2, kStruckNode = 1, kStruckRail = 0;

class RanksPerNodeTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    ASSERT_OK_AND_ASSIGN(
        cluster_,
        netns::Cluster::create(
            {.nodes = kNodes, .ranks_per_node = kPerNode, .rails = 2, .rail_rate = 400'000'000}));
  }

  static bool sameNode(int rank, int peer) { return rank / kPerNode == peer / kPerNode; }

  void reduceWithALostNic(const JobOptions& options) {
    Job job(*cluster_, kMegaElements, options);
    ASSERT_TRUE(job.awaitConnected()) << ::testing::PrintToString(job.problems());
    const auto* kind = injector::findFaultKind("port_down");
    ASSERT_OK_AND_ASSIGN(const auto parameters,
                         injector::FaultParameters::parse(*kind, {{"how", "carrier"}}));
    ASSERT_OK_AND_ASSIGN(const auto fault,
                         injector::makeFault("port_down", parameters,
                                             cluster_->railTarget(kStruckNode, kStruckRail)));
    ASSERT_OK(fault->prepare());
    const auto downAt = job.iterations();
    ASSERT_OK(fault->apply());
    EXPECT_TRUE(pollUntil(kLong, [&] { return job.iterations() > downAt + 5; }));
    ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    const auto upAt = job.iterations();
    EXPECT_TRUE(pollUntil(kLong, [&] { return job.iterations() > upAt + 5; }));
    int failovers = 0;
    for (int rank = 0; rank < job.size(); ++rank) {
      for (const auto& event : job.events(rank).failovers) {
        EXPECT_FALSE(sameNode(rank, event.peer)) << "nothing between them depends on a NIC";
        EXPECT_EQ(event.failover.rail, kStruckRail);
        ++failovers;
      }
    }
    EXPECT_GT(failovers, 0);
    job.stop();
    EXPECT_EQ(job.wrongElements(), 0);
    EXPECT_GT(job.checkedElements(), 0);
    EXPECT_TRUE(job.problems().empty()) << ::testing::PrintToString(job.problems());
  }

  std::unique_ptr<netns::Cluster> cluster_;
};

TEST_F(RanksPerNodeTest, ARingGoesOnWithoutANic) {
  reduceWithALostNic({.policy = "pull", .ranksPerNode = kPerNode});
}

TEST_F(RanksPerNodeTest, OptccServerGoesOnWithoutANic) {
  const schedule::PortBandwidths slowServer = {1, 1, .5, .5};
  reduceWithALostNic({.policy = "pull",
                      .ranksPerNode = kPerNode,
                      .algorithm = "optcc_server",
                      .bandwidths = slowServer});
}

}  // namespace
}  // namespace faultline::test

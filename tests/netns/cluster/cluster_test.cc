#include "harness/site/netns/cluster.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fstream>
#include <string>
#include <string_view>

#include "harness/site/netns/probe.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/shaper.h"
#include "tests/support/bulk_flow.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::netns {
namespace {

using test::BulkFlow;
using test::FlowEnd;
using test::pollUntil;

constexpr BitsPerSecond kRailRate = 200'000'000;
constexpr double kBytesPerSecond = kRailRate / 8.0;

class NetnsClusterTest : public test::NetnsTest {};

FlowEnd railEnd(const Cluster& cluster, int node, int rail) {
  return {cluster.nodeNamespace(node), railAddress(node, rail), railName(rail)};
}

TEST_F(NetnsClusterTest, EveryNodeReachesEveryOtherOverEveryRailAndManagement) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::create({.nodes = 3, .rails = 2, .rail_rate = kRailRate}));
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      for (int rail = 0; rail < 2; ++rail) {
        ASSERT_OK_AND_ASSIGN(const auto flow, BulkFlow::start(railEnd(*cluster, from, rail),
                                                              railEnd(*cluster, to, rail)));
        EXPECT_TRUE(pollUntil(5s, [&] { return flow->receivedBytes() > 0; }));
      }
      const auto management = [&](int node) {
        return FlowEnd{cluster->nodeNamespace(node), managementAddress(node), kManagementName};
      };
      ASSERT_OK_AND_ASSIGN(const auto flow, BulkFlow::start(management(from), management(to)));
      EXPECT_TRUE(pollUntil(5s, [&] { return flow->receivedBytes() > 0; }));
    }
  }
}

/// How many neighbours the node has not had to learn; -1: it has learned some.
int neighboursForGood(const Cluster& cluster, int node) {
  const auto inside = netlink::ScopedNamespace::enter(cluster.nodeNamespace(node));
  EXPECT_OK(inside.status());
  std::ifstream table("/proc/thread-self/net/arp");
  int count = 0;
  for (std::string line; std::getline(table, line);) {
    constexpr std::string_view kComplete = " 0x2 ", kPermanent = " 0x6 ";
    if (line.find(kComplete) != line.npos) return -1;
    if (line.find(kPermanent) != line.npos) ++count;
  }
  return count;
}

TEST_F(NetnsClusterTest, NodesAreToldOfEachOtherWhenTheyAreMany) {
  constexpr int kMany = 5;  // 40 neighbours with management
  ASSERT_OK_AND_ASSIGN(const auto large, Cluster::create({.nodes = kMany, .rails = 1}));
  ASSERT_OK_AND_ASSIGN(const auto flow,
                       BulkFlow::start(railEnd(*large, 0, 0), railEnd(*large, kMany - 1, 0)));
  EXPECT_TRUE(pollUntil(5s, [&] { return flow->receivedBytes() > 0; }));
  EXPECT_EQ(neighboursForGood(*large, 0), 2 * (kMany - 1));
  EXPECT_EQ(neighboursForGood(*large, kMany - 1), 2 * (kMany - 1));

  ASSERT_OK_AND_ASSIGN(const auto small, Cluster::create({.nodes = 3, .rails = 1}));
  EXPECT_EQ(neighboursForGood(*small, 0), 0) << "they ask, as in a real network";
}

TEST_F(NetnsClusterTest, ANodeIsReachedAgainAtOnceAfterItsPortWasDown) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::create({.nodes = 2, .rails = 1}));
  const FlowEnd from = railEnd(*cluster, 0, 0), to = railEnd(*cluster, 1, 0);
  const auto arrives = [&](Duration budget) {
    return test::sendDatagram(from, to, 0, budget).ok();
  };
  ASSERT_TRUE(arrives(5s)) << "node 0 now knows the address";
  const netlink::LinkEnd nic = cluster->railTarget(1, 0).nic;
  ASSERT_OK(netlink::setUp(*nic.socket, nic.ifindex, false));
  ASSERT_OK(netlink::setUp(*nic.socket, nic.ifindex, true));
  // Much shorter than it takes node 0 to doubt the address and to ask for it.
  EXPECT_TRUE(pollUntil(3s, [&] { return arrives(100ms); }));
}

TEST_F(NetnsClusterTest, PortsHaveUnequalIndexesAndAreUp) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::create({.nodes = 2, .rails = 2}));
  for (int node = 0; node < 2; ++node) {
    for (int rail = 0; rail < 2; ++rail) {
      const netlink::LinkTarget target = cluster->railTarget(node, rail);
      ASSERT_OK_AND_ASSIGN(const auto nic,
                           netlink::readNetDevice(*target.nic.socket, target.nic.ifindex));
      ASSERT_OK_AND_ASSIGN(const auto port, netlink::readNetDevice(*target.attachment.socket,
                                                                   target.attachment.ifindex));
      EXPECT_EQ(nic.name, railName(rail));
      EXPECT_NE(nic.ifindex, nic.peer_ifindex);
      EXPECT_EQ(nic.peer_ifindex, port.ifindex);
      EXPECT_TRUE(nic.carrier);
      EXPECT_TRUE(port.carrier);
      EXPECT_EQ(port.bridge_port_state, static_cast<int>(netlink::BridgePortState::kForwarding));
      ASSERT_EQ(target.siblings.size(), 1u);
    }
  }
}

/// What a program in the node has that does not choose.
std::string congestionControlIn(const Cluster& cluster, int node) {
  const auto inside = netlink::ScopedNamespace::enter(cluster.nodeNamespace(node));
  EXPECT_OK(inside.status());
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  char name[16] = {};
  socklen_t size = sizeof(name);
  EXPECT_EQ(getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

TEST_F(NetnsClusterTest, ProgramsHaveTheCongestionControlThatWasAskedFor) {
  const ClusterSpec as_is{.nodes = 2, .rails = 1};
  ASSERT_OK_AND_ASSIGN(const auto plain, Cluster::create(as_is));
  const std::string ours = congestionControlIn(*plain, 0);
  ClusterSpec spec = as_is;
  std::ifstream allowed("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  std::string other;
  while (allowed >> other && other == ours) {
  }
  if (other.empty() || other == ours) GTEST_SKIP() << "everybody may choose " << ours << " alone";
  spec.congestion_control = other;
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::create(spec));
  for (int node = 0; node < 2; ++node) EXPECT_EQ(congestionControlIn(*cluster, node), other);
  EXPECT_EQ(cluster->describe()->at("tcp_congestion_control"), other);
  EXPECT_EQ(congestionControlIn(*plain, 1), ours) << "only in the nodes";

  spec.congestion_control = "no_such";
  const auto refused = Cluster::create(spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("no_such"));
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("reno"));
}

TEST_F(NetnsClusterTest, ARailIsShapedToItsRateInEachDirection) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::create({.nodes = 2, .rails = 1, .rail_rate = kRailRate}));
  // Both directions at once: a NIC is full duplex.
  ASSERT_OK_AND_ASSIGN(const auto there,
                       BulkFlow::start(railEnd(*cluster, 0, 0), railEnd(*cluster, 1, 0)));
  ASSERT_OK_AND_ASSIGN(const auto back,
                       BulkFlow::start(railEnd(*cluster, 1, 0), railEnd(*cluster, 0, 0)));
  ASSERT_TRUE(pollUntil(5s, [&] { return there->receivedBytes() > kBytesPerSecond / 10; }));
  const std::uint64_t before = back->receivedBytes();
  const TimePoint begin = now();
  const double rate = there->measure(500ms);
  const double rate_back =
      static_cast<double>(back->receivedBytes() - before) / toSeconds(now() - begin);
  EXPECT_GT(rate / kBytesPerSecond, 0.6);
  EXPECT_LT(rate / kBytesPerSecond, 1.1);
  EXPECT_GT(rate_back / kBytesPerSecond, 0.6);
  EXPECT_LT(rate_back / kBytesPerSecond, 1.1);
}

TEST_F(NetnsClusterTest, CountersOfRailsTellWhoSentWhat) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::create({.nodes = 2, .rails = 2, .rail_rate = kRailRate}));
  std::vector<RailCounters> before;
  ASSERT_OK(cluster->readRailCounters(before));
  ASSERT_EQ(before.size(), 4u);
  constexpr std::uint64_t kEnough = 1'000'000;
  {
    ASSERT_OK_AND_ASSIGN(const auto flow,
                         BulkFlow::start(railEnd(*cluster, 0, 1), railEnd(*cluster, 1, 1)));
    ASSERT_TRUE(pollUntil(5s, [&] { return flow->receivedBytes() > kEnough; }));
  }
  std::vector<RailCounters> after;
  ASSERT_OK(cluster->readRailCounters(after));
  EXPECT_GT(after[1].tx_bytes - before[1].tx_bytes, kEnough);
  EXPECT_GT(after[3].rx_bytes - before[3].rx_bytes, kEnough);
  EXPECT_LT(after[0].tx_bytes - before[0].tx_bytes, kEnough / 10);
  EXPECT_LT(after[3].tx_bytes - before[3].tx_bytes, kEnough / 10);
}

TEST_F(NetnsClusterTest, TwoClustersDoNotDisturbEachOther) {
  ASSERT_OK_AND_ASSIGN(const auto first, Cluster::create({.nodes = 2, .rails = 1}));
  {
    ASSERT_OK_AND_ASSIGN(const auto second, Cluster::create({.nodes = 2, .rails = 1}));
    const netlink::LinkTarget target = second->railTarget(0, 0);
    ASSERT_OK(netlink::setUp(*target.attachment.socket, target.attachment.ifindex, false));
  }
  ASSERT_OK_AND_ASSIGN(const auto flow,
                       BulkFlow::start(railEnd(*first, 0, 0), railEnd(*first, 1, 0)));
  EXPECT_TRUE(pollUntil(5s, [&] { return flow->receivedBytes() > 0; }));
}

TEST_F(NetnsClusterTest, TheCallerStaysInItsNamespace) {
  ASSERT_OK_AND_ASSIGN(const UniqueFd before_fd, netlink::currentNamespace());
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::create({.nodes = 2, .rails = 1}));
  ASSERT_OK_AND_ASSIGN(const UniqueFd after_fd, netlink::currentNamespace());
  ASSERT_OK_AND_ASSIGN(const auto before, netlink::namespaceId(before_fd.get()));
  ASSERT_OK_AND_ASSIGN(const auto after, netlink::namespaceId(after_fd.get()));
  ASSERT_OK_AND_ASSIGN(const auto node, netlink::namespaceId(cluster->nodeNamespace(0)));
  EXPECT_EQ(before, after);
  EXPECT_NE(before, node);
}

TEST_F(NetnsClusterTest, DescriptionNamesWhatShapesAResult) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::create({.nodes = 1, .rails = 1, .rail_rate = kRailRate}));
  ASSERT_OK_AND_ASSIGN(const auto description, cluster->describe());
  EXPECT_EQ(description.at("tcp_orphan_retries"), "1");
  EXPECT_EQ(description.at("rail_rate"), "200Mbit");
  EXPECT_TRUE(description.contains("tcp_congestion_control"));
}

TEST_F(NetnsClusterTest, SpecsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(Cluster::create({.nodes = 0}).status().code(), Code::kInvalidArgument);
}

TEST_F(NetnsClusterTest, ProbeFindsEverythingThatTheClusterUses) {
  ASSERT_OK_AND_ASSIGN(const auto capabilities, probe());
  EXPECT_GE(capabilities.size(), 10u);
  for (const Capability& capability : capabilities) {
    EXPECT_TRUE(capability.ok) << capability.name << ": " << capability.details;
  }
}

}  // namespace
}  // namespace faultline::netns

#include <gtest/gtest.h>

#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

/// The path between nodes 1 and 2 on rail 0; node 0 is the third.
class PathCutTest : public FaultTest {
 protected:
  static constexpr Duration kShort = 300ms;
  static constexpr int kThird = 0;

  bool arrives(int from, int to, int rail = 0) {
    return test::sendDatagram(end(from, rail), end(to, rail), 0, kShort).ok();
  }
};

TEST_F(PathCutTest, TheTwoAreCutOffFromEachOtherAndFromNobodyElse) {
  const auto fault = makeTestFault("path_cut");
  ASSERT_OK(fault->prepare());
  for (int strike = 0; strike < 2; ++strike) {
    ASSERT_TRUE(arrives(kTargetNode, kPeerNode));
    ASSERT_OK(fault->apply());
    EXPECT_FALSE(arrives(kTargetNode, kPeerNode));
    EXPECT_FALSE(arrives(kPeerNode, kTargetNode));
    for (const int node : {kTargetNode, kPeerNode}) {
      EXPECT_TRUE(arrives(node, kThird));
      EXPECT_TRUE(arrives(kThird, node));
      ASSERT_OK_AND_ASSIGN(const netlink::NetDevice nic,
                           netlink::readNetDevice(cluster_->nodeSocket(node), target_.nic.ifindex));
      EXPECT_TRUE(nic.carrier);
    }
    EXPECT_TRUE(arrives(kTargetNode, kPeerNode, 1)) << "another rail";
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_TRUE(arrives(kPeerNode, kTargetNode));
  }
  ASSERT_EQ(fault->transitions().size(), 4u);
  EXPECT_EQ(fault->transitions()[0].peer, netns::railAddress(kPeerNode, 0));
}

TEST_F(PathCutTest, UnderLoadTheEvidenceIsTheSame) {
  const auto cut = startFlow(kTargetNode, kPeerNode);
  const auto whole = startFlow(kTargetNode, kThird);
  const auto fault = makeTestFault("path_cut");
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_TRUE(stops(*cut));
  const std::uint64_t before = whole->receivedBytes();
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return whole->receivedBytes() > before + 100'000; }));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
}

TEST_F(PathCutTest, IsProvedAlsoWhileTheThirdNodesPortIsDown) {
  netlink::Socket& third = cluster_->nodeSocket(kThird);
  const int nic = cluster_->railTarget(kThird, 0).nic.ifindex;
  const auto fault = makeTestFault("path_cut");
  ASSERT_OK(fault->prepare());
  ASSERT_OK(netlink::setUp(third, nic, false));
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  ASSERT_OK(fault->revert());
  const auto other = makeTestFault("path_cut");
  ASSERT_OK(other->prepare());  // it was down before
  ASSERT_OK_AND_ASSIGN(const Evidence whole, other->evidence());
  EXPECT_FALSE(whole.ok) << whole.observed;
}

TEST_F(PathCutTest, WhatIsWholeAndWhatIsSilentAltogetherIsNoCutPath) {
  const auto fault = makeTestFault("path_cut");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence whole, fault->evidence());
  EXPECT_FALSE(whole.ok) << whole.observed;
  const auto other = makeTestFault("path_cut");
  ASSERT_OK(other->prepare());
  ASSERT_OK(netlink::setBridgePortState(*target_.attachment.socket, target_.attachment.ifindex,
                                        netlink::BridgePortState::kDisabled));
  ASSERT_OK_AND_ASSIGN(const Evidence silent, other->evidence());
  EXPECT_FALSE(silent.ok) << silent.observed;
}

TEST_F(PathCutTest, OneDirectionOnlyIsNotEnough) {
  const auto fault = makeTestFault("path_cut");
  ASSERT_OK(fault->prepare());
  constexpr netlink::DropRule kAll{netlink::Passing::kSent, 1};
  ASSERT_OK(netlink::addDropRules(*target_.peer_attachment.socket, target_.peer_attachment.ifindex,
                                  std::span(&kAll, 1)));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

// That they reach the switch does not prove that it would send them to anybody.
TEST_F(PathCutTest, WhatAThirdPortCouldHaveSeenAndDidNotIsNoProof) {
  const auto fault = makeTestFault("path_cut");
  ASSERT_OK(fault->prepare());
  constexpr netlink::DropRule kAll{netlink::Passing::kSent, 1};
  for (const int port : target_.siblings) {
    if (port == target_.peer_attachment.ifindex) continue;
    ASSERT_OK(netlink::addDropRules(*target_.attachment.socket, port, std::span(&kAll, 1)));
  }
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(PathCutTest, IsUndoneByItsDestructor) {
  {
    const auto fault = makeTestFault("path_cut");
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_TRUE(arrives(kTargetNode, kPeerNode));
  EXPECT_TRUE(arrives(kPeerNode, kTargetNode));
}

TEST_F(PathCutTest, WithoutAThirdLinkItIsRefused) {
  target_.siblings = {target_.peer_attachment.ifindex};
  EXPECT_EQ(makeTestFault("path_cut")->prepare().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace faultline::injector

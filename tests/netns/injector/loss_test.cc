#include <gtest/gtest.h>

#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class LossTest : public FaultTest {
 protected:
  static constexpr Duration kShort = 300ms;

  /// Whether a datagram on the target's rail arrives.
  bool arrives(int from, int to) { return test::sendDatagram(end(from), end(to), 0, kShort).ok(); }
};

TEST_F(LossTest, OneDirectionIsLostAndTheOtherWorks) {
  // Neighbours must know each other: ARP needs both directions.
  ASSERT_TRUE(arrives(kTargetNode, 0));
  ASSERT_TRUE(arrives(0, kTargetNode));
  for (const bool out : {true, false}) {
    const auto fault = makeTestFault("one_way_loss", {{"direction", out ? "out" : "in"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    EXPECT_EQ(arrives(kTargetNode, 0), !out);
    EXPECT_EQ(arrives(0, kTargetNode), out);
    ASSERT_OK_AND_ASSIGN(const netlink::NetDevice nic,
                         netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    EXPECT_TRUE(nic.carrier);
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_TRUE(arrives(kTargetNode, 0));
    EXPECT_TRUE(arrives(0, kTargetNode));
  }
}

TEST_F(LossTest, UnderLoadAStreamStopsAndTheEvidenceIsTheSame) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(2, kTargetNode);
  const auto fault = makeTestFault("one_way_loss", {{"direction", "in"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_TRUE(stops(*there)) << "its acknowledgements are lost";
  EXPECT_TRUE(stops(*back));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
}

TEST_F(LossTest, AShareOfTheFramesIsLostAtRandom) {
  for (const char* const percent : {"1%", "30%", "90%"}) {
    for (const char* const direction : {"both", "out", "in"}) {
      const auto fault = makeTestFault("loss", {{"percent", percent}, {"direction", direction}});
      ASSERT_OK(fault->prepare());
      ASSERT_OK(fault->apply());
      ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
      EXPECT_TRUE(evidence.ok) << percent << " " << direction << ": " << evidence.observed;
      ASSERT_OK(fault->revert());
    }
  }
}

TEST_F(LossTest, TheManagementNetworkCanLoseFramesToo) {
  target_ = cluster_->managementTarget(kTargetNode);
  const auto fault = makeTestFault("loss", {{"percent", "30%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
}

TEST_F(LossTest, WithoutEffectThereIsNoEvidence) {
  for (const char* const kind : {"loss", "one_way_loss"}) {
    std::map<std::string, std::string> parameters;
    if (std::string_view(kind) == "loss") parameters["percent"] = "1%";
    const auto fault = makeTestFault(kind, parameters);
    ASSERT_OK(fault->prepare());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_FALSE(evidence.ok) << evidence.observed;
  }
}

TEST_F(LossTest, AnotherShareThanAskedForIsNoEvidence) {
  const auto fault = makeTestFault("loss", {{"percent", "30%"}, {"direction", "out"}});
  ASSERT_OK(fault->prepare());
  constexpr netlink::DropRule kAll{netlink::Passing::kReceived, 0.6};
  ASSERT_OK(netlink::addDropRules(*target_.attachment.socket, target_.attachment.ifindex,
                                  std::span(&kAll, 1)));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(LossTest, ALinkThatIsWhollySilentIsNotOneWayLoss) {
  const auto fault = makeTestFault("one_way_loss");
  ASSERT_OK(fault->prepare());
  ASSERT_OK(netlink::setBridgePortState(*target_.attachment.socket, target_.attachment.ifindex,
                                        netlink::BridgePortState::kDisabled));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(LossTest, AForeignFilterIsLeftAloneAndRefused) {
  constexpr netlink::DropRule kForeign{netlink::Passing::kSent, 0};
  ASSERT_OK(netlink::addDropRules(*target_.attachment.socket, target_.attachment.ifindex,
                                  std::span(&kForeign, 1)));
  const auto fault = makeTestFault("one_way_loss");
  EXPECT_EQ(fault->prepare().code(), Code::kAlreadyExists);
  ASSERT_OK(netlink::removeDropRules(*target_.attachment.socket, target_.attachment.ifindex));
}

TEST_F(LossTest, IsUndoneByItsDestructor) {
  {
    const auto fault = makeTestFault("one_way_loss");
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_TRUE(targetCarriesTraffic());
}

}  // namespace
}  // namespace faultline::injector

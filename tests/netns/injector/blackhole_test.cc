#include <functional>

#include "injector/faults/registry.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/shaper.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class BlackholeTest : public FaultTest {};

TEST_F(BlackholeTest, SwallowsTrafficKeepsTheCarrierLeavesEvidenceAndIsUndone) {
  for (const bool loaded : {true, false}) {
    const auto there = loaded ? startFlow(kTargetNode, 0) : nullptr;
    const auto back = loaded ? startFlow(2, kTargetNode) : nullptr;
    const auto others = loaded ? startFlow(0, 2) : nullptr;  // must not be mistaken for a leak
    const auto fault = makeTestFault("blackhole");
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    if (loaded) {
      EXPECT_TRUE(stops(*there));
      EXPECT_TRUE(stops(*back));
    }
    ASSERT_OK_AND_ASSIGN(const auto nic,
                         netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    EXPECT_TRUE(nic.carrier);
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

TEST_F(BlackholeTest, WithoutEffectThereIsNoEvidence) {
  const auto fault = makeTestFault("blackhole");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
}

TEST_F(BlackholeTest, APortThatIsDownIsNotABlackHole) {
  const auto fault = makeTestFault("blackhole");
  ASSERT_OK(fault->prepare());
  ASSERT_OK(netlink::setUp(*target_.attachment.socket, target_.attachment.ifindex, false));
  const auto evidence = fault->evidence();
  EXPECT_TRUE(!evidence.ok() || !evidence->ok);
  ASSERT_OK(netlink::setUp(*target_.attachment.socket, target_.attachment.ifindex, true));
}

TEST_F(BlackholeTest, LeavesEvidenceAgainAfterItsPortWasDownInBetween) {
  const auto fault = makeTestFault("blackhole");
  const auto port = makeTestFault("port_down", {{"how", "admin"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(port->prepare());
  for (int strike = 0; strike < 2; ++strike) {
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    ASSERT_OK(port->apply());
    ASSERT_OK(port->revert());
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

TEST_F(BlackholeTest, IsUndoneByItsDestructor) {
  {
    const auto fault = makeTestFault("blackhole");
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_TRUE(targetCarriesTraffic());
}

TEST_F(BlackholeTest, ASwitchWithoutOtherPortsIsRefused) {
  target_.siblings.clear();
  EXPECT_EQ(makeTestFault("blackhole")->prepare().code(), Code::kUnsupported);
}

class NoneTest : public FaultTest {};

TEST_F(NoneTest, NeverLeavesEvidence) {
  const auto fault = makeTestFault("none");
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok);
  ASSERT_OK(fault->revert());
}

class RegistryTest : public FaultTest {};

TEST_F(RegistryTest, EveryFaultOfTheTableCanBeMade) {
  for (const FaultKind& kind : faultKinds()) {
    if (kind.target == TargetKind::kRdma) continue;  // made by makeRdmaFault()
    const auto fault = makeTestFault(kind.name, requiredOf(kind));
    EXPECT_OK(fault->prepare());
  }
  EXPECT_EQ(makeFault("meteor", {}, target_).status().code(), Code::kNotFound);
}

// As a scenario has them that strikes a link by one kind twice: both are prepared before the run.
TEST_F(RegistryTest, TwoOfAKindCanBePreparedForOneLink) {
  for (const FaultKind& kind : faultKinds()) {
    if (kind.target != TargetKind::kLink || kind.ofConnections) continue;
    SCOPED_TRACE(kind.name);
    const auto first = makeTestFault(kind.name, requiredOf(kind));
    const auto second = makeTestFault(kind.name, requiredOf(kind));
    ASSERT_OK(first->prepare());
    ASSERT_OK(second->prepare());
    for (const auto* const fault : {&first, &second}) {
      ASSERT_OK((*fault)->apply());
      ASSERT_OK((*fault)->revert());
    }
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

// Faults of links, repeated: each time with evidence of its own, and none when it was not applied.
TEST_F(RegistryTest, EveryFaultOfALinkCanBeRepeatedWithEvidenceEachTime) {
  for (const FaultKind& kind : faultKinds()) {
    if (kind.target != TargetKind::kLink || kind.ofConnections) continue;
    SCOPED_TRACE(kind.name);
    const auto fault = makeTestFault(kind.name, requiredOf(kind));
    ASSERT_OK(fault->prepare());
    std::size_t known = 0;
    for (int strike = 0; strike < 3; ++strike) {
      ASSERT_OK(fault->apply());
      EXPECT_GT(fault->transitions().size(), known);
      EXPECT_TRUE(fault->transitions()[known].broken);
      ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
      EXPECT_TRUE(evidence.ok) << evidence.observed;
      ASSERT_OK(fault->revert());
      EXPECT_FALSE(fault->transitions().back().broken);
      known = fault->transitions().size();
    }
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

TEST_F(RegistryTest, EvidenceOfAnEarlierStrikeDoesNotCount) {
  netlink::Socket& socket = *target_.attachment.socket;
  const int port = target_.attachment.ifindex;
  const std::map<std::string, std::function<Status()>> undo_by_hand = {
      {"port_down", [&] { return netlink::setUp(socket, port, true); }},
      {"blackhole",
       [&] {
         return netlink::setBridgePortState(socket, port, netlink::BridgePortState::kForwarding);
       }},
      {"one_way_loss", [&] { return netlink::removeDropRules(socket, port); }},
      {"throttle",
       [&]() -> Status {
         RETURN_IF_ERROR(netlink::setShaperRate(socket, port, kRailRate));
         return netlink::setShaperRate(*target_.nic.socket, target_.nic.ifindex, kRailRate);
       }},
  };
  for (const auto& [kind, undo] : undo_by_hand) {
    SCOPED_TRACE(kind);
    std::map<std::string, std::string> required;
    if (kind == "throttle") required["rate"] = "5%";
    const auto fault = makeTestFault(kind, required);
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence first, fault->evidence());
    EXPECT_TRUE(first.ok) << first.observed;
    ASSERT_OK(fault->revert());
    ASSERT_OK(fault->apply());
    ASSERT_OK(undo());
    ASSERT_OK_AND_ASSIGN(const Evidence second, fault->evidence());
    EXPECT_FALSE(second.ok) << second.observed;
    (void)fault->revert();  // finds less to undo than it did
  }
}

}  // namespace
}  // namespace faultline::injector

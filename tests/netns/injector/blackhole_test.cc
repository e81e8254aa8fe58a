#include "injector/netlink/link.h"
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
                         netlink::readLink(*target_.nic.socket, target_.nic.ifindex));
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
    std::map<std::string, std::string> required;
    if (kind.name == "throttle") required["rate"] = "50%";
    const auto fault = makeTestFault(kind.name, required);
    EXPECT_OK(fault->prepare());
  }
  EXPECT_EQ(makeFault("meteor", {}, target_).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace faultline::injector

#include <array>

#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class LateDeliveryTest : public FaultTest {
 protected:
  bool targetIsWhole() {
    const auto nic = netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex);
    const auto port =
        netlink::readNetDevice(*target_.attachment.socket, target_.attachment.ifindex);
    return nic.ok() && port.ok() && netlink::isOperational(*nic) && netlink::isOperational(*port);
  }

  /// Steps the fault until it has let go.
  bool stepThroughHold(Fault& fault) {
    return test::pollUntil(kLong, [&] {
      EXPECT_OK(fault.step(now()));
      return !fault.transitions().back().broken;
    });
  }
};

TEST_F(LateDeliveryTest, HoldsTrafficBackAndDeliversItLateInEachDirection) {
  for (const char* const direction : {"both", "out", "in"}) {
    SCOPED_TRACE(direction);
    const auto there = startFlow(kTargetNode, 0);
    const auto back = startFlow(2, kTargetNode);
    const auto fault = makeTestFault("late_delivery", {{"direction", direction}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_TRUE(stepThroughHold(*fault));
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_EQ(evidence.observed.find("out:") != std::string::npos, std::string(direction) != "in");
    EXPECT_EQ(evidence.observed.find("in:") != std::string::npos, std::string(direction) != "out");
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

TEST_F(LateDeliveryTest, ALinkThatDoesNotHoldIsNotProved) {
  const auto fault = makeTestFault("late_delivery");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  ASSERT_OK(fault->apply());
  ASSERT_OK(netlink::removeDropRules(*target_.attachment.socket, target_.attachment.ifindex));
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return !fault->step(now()).ok(); }))
      << "whose filter has gone cannot be let go";
  const auto evidence = fault->evidence();
  EXPECT_TRUE(!evidence.ok() || !evidence->ok);
}

TEST_F(LateDeliveryTest, WhatCrossesWhileItHoldsDisprovesIt) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(2, kTargetNode);
  const auto fault = makeTestFault("late_delivery", {{"hold", "300ms"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  netlink::Socket& socket = *target_.attachment.socket;
  ASSERT_OK(netlink::removeDropRules(socket, target_.attachment.ifindex));
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_OK(fault->step(now()));
    return now() - fault->transitions().back().after > 150ms;
  }));
  const std::array<netlink::DropRule, 2> rules{
      {{.passing = netlink::Passing::kReceived}, {.passing = netlink::Passing::kSent}}};
  ASSERT_OK(netlink::addDropRules(socket, target_.attachment.ifindex, rules));
  ASSERT_TRUE(stepThroughHold(*fault));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
  EXPECT_NE(evidence.observed.find("probes crossed it"), std::string::npos) << evidence.observed;
}

TEST_F(LateDeliveryTest, WhatMeetsAPortThatIsDownIsCountedAndProvesNothing) {
  const auto there = startFlow(kTargetNode, 0);
  const auto fault = makeTestFault("late_delivery", {{"direction", "out"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_OK(fault->step(now()));
    return now() - fault->transitions().back().after > 40ms;
  }));
  ASSERT_OK(netlink::setUp(*target_.nic.socket, target_.nic.ifindex, false));
  ASSERT_TRUE(stepThroughHold(*fault));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
  EXPECT_EQ(evidence.observed.find(" 0 met a port"), std::string::npos) << evidence.observed;
  ASSERT_OK(fault->revert());
  ASSERT_OK(netlink::setUp(*target_.nic.socket, target_.nic.ifindex, true));
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return targetIsWhole(); }));
  // The next strike is as good as the first.
  ASSERT_OK(fault->apply());
  ASSERT_TRUE(stepThroughHold(*fault));
  ASSERT_OK_AND_ASSIGN(const Evidence again, fault->evidence());
  EXPECT_TRUE(again.ok) << again.observed;
  EXPECT_NE(again.observed.find(" 0 met a port"), std::string::npos) << again.observed;
}

TEST_F(LateDeliveryTest, IsUndoneByItsDestructorWhileItHolds) {
  {
    const auto fault = makeTestFault("late_delivery", {{"hold", "1h"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_OK(fault->step(now()));
  }
  EXPECT_TRUE(targetCarriesTraffic());
}

}  // namespace
}  // namespace faultline::injector

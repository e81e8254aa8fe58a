#include "injector/netlink/drop_filter.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class LateDeliveryTest : public FaultTest {
 protected:
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

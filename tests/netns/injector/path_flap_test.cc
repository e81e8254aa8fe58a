#include <functional>

#include "injector/netlink/interface.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class PathFlapTest : public FaultTest {
 protected:
  /// Steps the fault until it has been broken and whole again so often.
  bool stepThrough(Fault& fault, std::size_t outages) {
    return test::pollUntil(kLong, [&] {
      EXPECT_OK(fault.step(now()));
      return fault.transitions().size() >= 2 * outages;
    });
  }
};

TEST_F(PathFlapTest, EveryOutageIsProvedUnderLoadAndWithoutAndTheCarrierStays) {
  constexpr std::size_t kOutages = 5;
  for (const bool loaded : {true, false}) {
    const auto there = loaded ? startFlow(kTargetNode, 0) : nullptr;
    const auto back = loaded ? startFlow(2, kTargetNode) : nullptr;
    const auto fault =
        makeTestFault("path_flap", {{"count", "5"}, {"period", "50ms"}, {"duty", "20%"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK_AND_ASSIGN(const auto before,
                         netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    ASSERT_OK(fault->apply());
    ASSERT_TRUE(stepThrough(*fault, kOutages));
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_EQ(fault->transitions().size(), 2 * kOutages);
    ASSERT_OK_AND_ASSIGN(const auto nic,
                         netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    EXPECT_EQ(nic.carrier_down_count, before.carrier_down_count);
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

TEST_F(PathFlapTest, AnOutageThatSomebodyEndsAtOnceIsNotProved) {
  const auto fault =
      makeTestFault("path_flap", {{"count", "2"}, {"period", "100ms"}, {"duty", "50%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  ASSERT_OK(fault->apply());
  ASSERT_TRUE(stepThrough(*fault, 1));
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_OK(fault->step(now()));
    if (fault->transitions().size() < 3) return false;
    EXPECT_OK(netlink::setBridgePortState(*target_.attachment.socket, target_.attachment.ifindex,
                                          netlink::BridgePortState::kForwarding));
    return true;
  }));
  ASSERT_TRUE(stepThrough(*fault, 2));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(PathFlapTest, IsUndoneByItsDestructorInAnOutage) {
  {
    const auto fault = makeTestFault("path_flap", {{"period", "1h"}, {"duty", "99%"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_TRUE(targetCarriesTraffic());
}

}  // namespace
}  // namespace faultline::injector

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <poll.h>

#include <algorithm>
#include <string>

#include "injector/netlink/interface.h"
#include "injector/netlink/interface_configuration.h"
#include "injector/netlink/namespace.h"
#include "tests/netns/injector/fault_fixture.h"
#include "tests/support/carrier_monitor.h"
#include "tests/support/netns_shell.h"

namespace faultline::injector {
namespace {

using test::CarrierMonitor;
using test::pollUntil;

class PortFaultTest : public FaultTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::unique_ptr<Fault> portDown() { return makeTestFault("port_down", {{"how", GetParam()}}); }

  netlink::NetDevice nic() {
    return *netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex);
  }

  /// A static route through the rail, as an administrator would add one: 10.99.0.0/16.
  Status addRoute() {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = 16;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = RT_SCOPE_UNIVERSE;
    header.rtm_type = RTN_UNICAST;
    netlink::Message message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, header);
    message.put(RTA_DST, static_cast<std::uint32_t>(::inet_addr("10.99.0.0")));
    message.put(RTA_GATEWAY,
                static_cast<std::uint32_t>(::inet_addr(netns::railAddress(0, 0).c_str())));
    message.put(RTA_OIF, static_cast<std::uint32_t>(target_.nic.ifindex));
    return target_.nic.socket->request(std::move(message), "add a static route");
  }
};

INSTANTIATE_TEST_SUITE_P(How, PortFaultTest, ::testing::Values("carrier", "admin"),
                         [](const auto& how) { return std::string(how.param); });

TEST_P(PortFaultTest, StopsTrafficLeavesEvidenceAndIsUndone) {
  ASSERT_OK(addRoute());
  ASSERT_OK_AND_ASSIGN(const auto before, netlink::InterfaceConfiguration::read(
                                              *target_.nic.socket, target_.nic.ifindex));
  const auto flow = startFlow(kTargetNode, 0);
  const auto fault = portDown();
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_TRUE(stops(*flow));
  EXPECT_FALSE(nic().carrier);
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  ASSERT_OK(fault->revert());
  EXPECT_TRUE(nic().carrier);
  ASSERT_OK_AND_ASSIGN(const int missing, before.missing(*target_.nic.socket));
  EXPECT_EQ(missing, 0);
  EXPECT_TRUE(targetCarriesTraffic());
  ASSERT_EQ(fault->transitions().size(), 2u);
  EXPECT_LE(fault->transitions()[0].before, fault->transitions()[0].after);
  EXPECT_TRUE(fault->transitions()[0].broken);
  EXPECT_FALSE(fault->transitions()[1].broken);
  RecordProperty("evidence", evidence.observed);
}

// They go with the carrier, too, and their routes with them.
TEST_P(PortFaultTest, NexthopObjectsComeBack) {
  const int node = target_.nic.socket->namespaceFd();
  test::runInNamespace(
      node, "ip nexthop add id 5 dev " + nic().name + " && ip route add 10.98.0.0/16 nhid 5");
  ASSERT_OK_AND_ASSIGN(const auto before, netlink::InterfaceConfiguration::read(
                                              *target_.nic.socket, target_.nic.ifindex));
  const auto fault = portDown();
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  // With the carrier it goes when the kernel finds the time.
  ASSERT_TRUE(pollUntil(kLong, [&] {
    const auto missing = before.missingInWords(*target_.nic.socket);
    return missing.ok() && std::ranges::any_of(*missing, [](const std::string& line) {
             return line.starts_with("nexthop id 5 ");
           });
  }));
  ASSERT_OK(fault->revert());
  test::runInNamespace(node, "ip route show 10.98.0.0/16 | grep 'nhid 5'");
}

TEST_P(PortFaultTest, AdminLosesRoutesAndCarrierDoesNot) {
  ASSERT_OK(addRoute());
  ASSERT_OK_AND_ASSIGN(const auto before, netlink::InterfaceConfiguration::read(
                                              *target_.nic.socket, target_.nic.ifindex));
  const auto fault = portDown();
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const int missing, before.missing(*target_.nic.socket));
  EXPECT_EQ(missing > 0, std::string(GetParam()) == "admin");
}

TEST_P(PortFaultTest, WithoutEffectThereIsNoEvidence) {
  const auto never_applied = portDown();
  ASSERT_OK(never_applied->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, never_applied->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;

  const auto undone = portDown();
  ASSERT_OK(undone->prepare());
  ASSERT_OK(undone->apply());
  // Somebody else repairs it before anything was observed.
  ASSERT_OK(netlink::setUp(*target_.nic.socket, target_.nic.ifindex, true));
  ASSERT_OK(netlink::setUp(*target_.attachment.socket, target_.attachment.ifindex, true));
  ASSERT_OK_AND_ASSIGN(const Evidence repaired, undone->evidence());
  EXPECT_FALSE(repaired.ok) << repaired.observed;
}

TEST_P(PortFaultTest, IsUndoneByItsDestructorAndOnlyOnce) {
  {
    const auto fault = portDown();
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->revert());  // nothing was applied: nothing to do
    EXPECT_TRUE(fault->transitions().empty());
    ASSERT_OK(fault->apply());
    EXPECT_FALSE(nic().carrier);
  }
  EXPECT_TRUE(nic().carrier);
  const auto fault = portDown();
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK(fault->revert());
  ASSERT_OK(fault->revert());
  EXPECT_EQ(fault->transitions().size(), 2u);
}

TEST_P(PortFaultTest, APortThatIsDownAlreadyIsRefused) {
  ASSERT_OK(netlink::setUp(*target_.attachment.socket, target_.attachment.ifindex, false));
  EXPECT_EQ(portDown()->prepare().code(), Code::kUnavailable);
}

TEST_P(PortFaultTest, FlapsAsOftenAsAskedAndEveryLossIsSeenByTheOtherEnd) {
  ASSERT_OK(addRoute());
  ASSERT_OK_AND_ASSIGN(const auto before, netlink::InterfaceConfiguration::read(
                                              *target_.nic.socket, target_.nic.ifindex));
  constexpr std::size_t kFlaps = 5;
  const auto fault = makeTestFault(
      "port_flap", {{"how", GetParam()}, {"count", "5"}, {"period", "20ms"}, {"duty", "25%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_TRUE(pollUntil(kLong, [&] {
    EXPECT_TRUE(fault->step(now()).ok());
    return fault->transitions().size() == 2 * kFlaps;
  }));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  ASSERT_OK(fault->revert());
  EXPECT_EQ(fault->transitions().size(), 2 * kFlaps);
  ASSERT_OK_AND_ASSIGN(const int missing, before.missing(*target_.nic.socket));
  EXPECT_EQ(missing, 0);
  EXPECT_TRUE(targetCarriesTraffic());
}

TEST_P(PortFaultTest, FlappingIsUndoneInEitherPhase) {
  for (const bool end_while_down : {true, false}) {
    const auto fault = makeTestFault("port_flap", {{"how", GetParam()}, {"period", "10ms"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_TRUE(pollUntil(kLong, [&] {
      EXPECT_TRUE(fault->step(now()).ok());
      return fault->transitions().size() >= 4 &&
             fault->transitions().back().broken == end_while_down;
    }));
    ASSERT_OK(fault->revert());
    EXPECT_FALSE(fault->transitions().back().broken);
    EXPECT_TRUE(nic().carrier);
    const auto count = fault->transitions().size();
    ASSERT_OK(fault->step(now() + 1s));
    EXPECT_EQ(fault->transitions().size(), count) << "it went on flapping after revert";
  }
}

TEST_P(PortFaultTest, AFlapWithoutEffectLeavesNoEvidence) {
  const auto fault = makeTestFault("port_flap", {{"how", GetParam()}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

// The trap that the cluster's choice of interface indexes avoids, kept here on purpose.
class CarrierEventTest : public test::NetnsTest {
 protected:
  struct Train {
    int losses_counted = 0;  ///< by the kernel's own counter
    int losses_reported = 0;
  };

  /// A fast train of flaps of the far end, as seen by a listener at the near end: each change comes
  /// as soon as the one before was reported, or after `patience`.
  Train flap(int near_index, int far_index, Duration patience) {
    Train train;
    const auto near_fd = netlink::newNamespace();
    const auto far_fd = netlink::newNamespace();
    auto near = netlink::Socket::open(near_fd->get());
    auto far = netlink::Socket::open(far_fd->get());
    EXPECT_OK(netlink::createVeth(*near, {"near", near_index}, far_fd->get(), {"far", far_index}));
    EXPECT_OK(netlink::setUp(*near, near_index, true));
    EXPECT_OK(netlink::setUp(*far, far_index, true));
    auto monitor = CarrierMonitor::open(near_fd->get(), near_index);
    const auto before = netlink::readNetDevice(*near, near_index);
    constexpr int kFlaps = 20;
    for (int count = 0; count < kFlaps; ++count) {
      EXPECT_OK(netlink::setUp(*far, far_index, false));
      monitor->await(false, patience);
      EXPECT_OK(netlink::setUp(*far, far_index, true));
      monitor->await(true, patience);
    }
    monitor->await(true, 3s);
    for (const CarrierMonitor::Event& event : monitor->changes()) {
      if (!event.carrier) ++train.losses_reported;
    }
    const auto after = netlink::readNetDevice(*near, near_index);
    train.losses_counted = static_cast<int>(after->carrier_down_count - before->carrier_down_count);
    return train;
  }
};

TEST_F(CarrierEventTest, WithUnequalIndexesEveryLossIsReported) {
  const Train train = flap(500, 501, 3s);
  EXPECT_EQ(train.losses_counted, 20);
  EXPECT_EQ(train.losses_reported, 20);
}

TEST_F(CarrierEventTest, WithEqualIndexesTheKernelCoalescesEvents) {
  const Train train = flap(500, 500, 5ms);
  EXPECT_EQ(train.losses_counted, 20);
  EXPECT_LT(train.losses_reported, 20)
      << "this kernel no longer coalesces: the choice of indexes may be dropped";
}

}  // namespace
}  // namespace faultline::injector

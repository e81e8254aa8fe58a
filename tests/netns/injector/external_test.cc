#include <gtest/gtest.h>

#include <cstdlib>

#include "base/executable.h"
#include "injector/netlink/interface.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class ExternalPlaceTest : public FaultTest {};

TEST_F(ExternalPlaceTest, CommandsRunInTheNetworkOfTheNodeAndKnowItsInterface) {
  const auto fault = makeTestFault(
      "external", {{"apply", "sh -c 'ip link set $FAULTLINE_INTERFACE mtu 1111'"},
                   {"revert", "sh -c 'ip link set $FAULTLINE_INTERFACE mtu 1500'"},
                   {"evidence",
                    "sh -c 'ip -o link show $FAULTLINE_INTERFACE | grep -q \"mtu 1111\" && "
                    "ip -o -4 addr show | grep $FAULTLINE_ADDRESS'"}});
  const auto mtu = [&] {
    const auto nic = netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex);
    return nic.ok() ? nic->mtu : 0;
  };
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_EQ(mtu(), 1111U);
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_NE(evidence.observed.find(netns::railAddress(kTargetNode, 0)), std::string::npos)
      << evidence.observed;
  ASSERT_OK(fault->revert());
  EXPECT_EQ(mtu(), 1500U);
}

// The example of docs/faults.md.
TEST_F(ExternalPlaceTest, AnMtuIsProvedByAnswersThatDoNotComeIn) {
  const char* const folders = std::getenv("PATH");
  if (!findExecutable("ping", ".", folders == nullptr ? "" : folders).ok())
    GTEST_SKIP() << "there is no ping here (iputils-ping)";
  const auto fault = makeTestFault(
      "external",
      {{"apply", "sh -c 'ip link set $FAULTLINE_INTERFACE mtu 600'"},
       {"revert", "sh -c 'ip link set $FAULTLINE_INTERFACE mtu 1500'"},
       {"evidence", fmt::format("sh -c 'ping -c 1 -W 1 -s 100 {0} >/dev/null || exit 1; "
                                "ping -c 1 -W 1 -M dont -s 1000 {0} >/dev/null && exit 1; "
                                "echo \"node 0 answers 100 bytes, and not 1000\"'",
                                netns::railAddress(0, 0))}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_EQ(evidence.observed, "node 0 answers 100 bytes, and not 1000");
}

TEST_F(ExternalPlaceTest, OnTheSideOfTheBenchThereIsNoRail) {
  const auto fault = makeTestFault(
      "external", {{"apply", "true"},
                   {"revert", "true"},
                   {"where", "bench"},
                   {"evidence", "sh -c 'ip -o -4 addr show | grep $FAULTLINE_ADDRESS'"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

}  // namespace
}  // namespace faultline::injector

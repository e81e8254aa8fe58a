#include <gtest/gtest.h>

#include "injector/netlink/interface.h"
#include "injector/netlink/packet_hook.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class MtuShrinkTest : public FaultTest {
 protected:
  static constexpr unsigned kSmallMtu = 1000;

  void setMtuOfNode(int node, unsigned mtu) {
    const netlink::LinkTarget link = cluster_->railTarget(node, 0);
    ASSERT_OK(netlink::setMtu(*link.nic.socket, link.nic.ifindex, mtu));
  }
};

TEST_F(MtuShrinkTest, AStreamOfFullPacketsStopsAndOneOfSmallerPacketsGoesOn) {
  const auto full = startFlow(kTargetNode, 0);
  // Its packets are small, but the kernel moves 64 KiB of them at once, as of the other.
  setMtuOfNode(2, kSmallMtu);
  const auto small = startFlow(2, kTargetNode);
  const auto fault = makeTestFault("mtu_shrink", {{"size", "1200B"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_TRUE(stops(*full));
  const std::uint64_t before = small->receivedBytes();
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return small->receivedBytes() > before + 1'000'000; }));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  ASSERT_OK(fault->revert());
  const std::uint64_t stood = full->receivedBytes();
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return full->receivedBytes() > stood; }))
      << "what was lost is sent again";
}

TEST_F(MtuShrinkTest, EachDirectionByItself) {
  for (const char* const direction : {"out", "in"}) {
    const auto there = startFlow(kTargetNode, 0);
    const auto back = startFlow(2, kTargetNode);
    const bool out = std::string_view(direction) == "out";
    const auto fault = makeTestFault("mtu_shrink", {{"direction", direction}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    EXPECT_TRUE(stops(out ? *there : *back)) << direction;
    const test::BulkFlow& other = out ? *back : *there;
    const std::uint64_t before = other.receivedBytes();
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return other.receivedBytes() > before + 100'000; }));
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << direction << ": " << evidence.observed;
  }
}

TEST_F(MtuShrinkTest, IsRefusedWhereLargerPacketsVanishAlready) {
  const auto other = makeTestFault("mtu_shrink", {{"size", "500B"}});
  ASSERT_OK(other->prepare());
  ASSERT_OK(other->apply());
  const Status status = makeTestFault("mtu_shrink", {{"size", "1000B"}})->prepare();
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.message();
  EXPECT_NE(status.message().find("probes do not cross"), std::string::npos) << status.message();
}

TEST_F(MtuShrinkTest, WithoutEffectOrWithAnotherSizeThereIsNoEvidence) {
  const auto fault = makeTestFault("mtu_shrink", {{"size", "1200B"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  const auto other = makeTestFault("mtu_shrink", {{"size", "1100B"}});
  ASSERT_OK(other->prepare());
  ASSERT_OK(other->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence smaller, fault->evidence());
  EXPECT_FALSE(smaller.ok) << smaller.observed;
}

TEST_F(MtuShrinkTest, ASizeThatTheLinkDoesNotReachIsRefused) {
  const auto fault = makeTestFault("mtu_shrink", {{"size", "1500B"}});
  EXPECT_EQ(fault->prepare().code(), Code::kInvalidArgument);
}

TEST_F(MtuShrinkTest, AForeignHookIsLeftAloneAndRefused) {
  netlink::Socket& socket = *target_.attachment.socket;
  ASSERT_OK(netlink::addHook(socket, target_.attachment.ifindex));
  EXPECT_EQ(makeTestFault("mtu_shrink")->prepare().code(), Code::kAlreadyExists);
  ASSERT_OK(netlink::removeHook(socket, target_.attachment.ifindex));
}

TEST_F(MtuShrinkTest, IsUndoneByItsDestructor) {
  {
    const auto fault = makeTestFault("mtu_shrink");
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_TRUE(targetCarriesTraffic());
}

}  // namespace
}  // namespace faultline::injector

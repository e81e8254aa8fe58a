#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/shaper.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class ThrottleTest : public FaultTest {
 protected:
  netlink::ShaperState shaper(const netlink::LinkEnd& end) {
    const auto state = netlink::readShaper(*end.socket, end.ifindex);
    EXPECT_TRUE(state.ok()) << state.status().message();
    return *state;
  }
  /// Bytes per second of a flow that has settled, relative to `rate`.
  static double share(const test::BulkFlow& flow, BitsPerSecond rate) {
    return flow.measure(400ms) * 8 / static_cast<double>(rate);
  }
};

TEST_F(ThrottleTest, SlowsTheJobDownInBothDirectionsAndIsUndone) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(2, kTargetNode);
  const auto fault = makeTestFault("throttle", {{"rate", "10%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_EQ(shaper(target_.nic).rate, kRailRate / 10);
  EXPECT_EQ(shaper(target_.attachment).rate, kRailRate / 10);
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_LT(share(*there, kRailRate), 0.3);
  EXPECT_LT(share(*back, kRailRate), 0.3);
  ASSERT_OK(fault->revert());
  EXPECT_EQ(shaper(target_.nic).rate, kRailRate);
  EXPECT_EQ(shaper(target_.attachment).rate, kRailRate);
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return share(*there, kRailRate) > 0.5; }));
}

TEST_F(ThrottleTest, TheJobsOwnLoadIsEvidenceEnough) {
  const auto flow = startFlow(kTargetNode, 0);
  const auto fault = makeTestFault("throttle", {{"rate", "20Mbit"}, {"direction", "tx"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  const TimePoint end = now() + 1s;
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_TRUE(fault->step(now()).ok());
    return now() > end;
  }));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_EQ(evidence.observed.find("own probes"), std::string::npos) << evidence.observed;
}

TEST_F(ThrottleTest, ProvesItselfWithoutLoadAtAnyRate) {
  for (const char* const rate : {"16kbit", "1Mbit", "4Mbit", "100Mbit", "80%"}) {
    for (const char* const direction : {"tx", "rx"}) {
      const auto fault = makeTestFault("throttle", {{"rate", rate}, {"direction", direction}});
      ASSERT_OK(fault->prepare());
      ASSERT_OK(fault->apply());
      ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
      EXPECT_TRUE(evidence.ok) << rate << " " << direction << ": " << evidence.observed;
      ASSERT_OK(fault->revert());
    }
  }
}

TEST_F(ThrottleTest, OneDirectionLeavesTheOtherAlone) {
  const auto fault = makeTestFault("throttle", {{"rate", "5%"}, {"direction", "rx"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_EQ(shaper(target_.nic).rate, kRailRate);
  EXPECT_EQ(shaper(target_.attachment).rate, kRailRate / 20);
}

TEST_F(ThrottleTest, WithoutEffectThereIsNoEvidence) {
  for (const bool loaded : {false, true}) {
    const auto flow = loaded ? startFlow(kTargetNode, 0) : nullptr;
    for (const char* const rate : {"5%", "80%"}) {
      const auto fault = makeTestFault("throttle", {{"rate", rate}, {"direction", "tx"}});
      ASSERT_OK(fault->prepare());
      ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
      EXPECT_FALSE(evidence.ok) << rate << ": " << evidence.observed;
    }
  }
}

TEST_F(ThrottleTest, ARateThatSomethingElseMadeIsNoEvidence) {
  const auto fault = makeTestFault("throttle", {{"rate", "50%"}, {"direction", "tx"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK(netlink::setShaperRate(*target_.nic.socket, target_.nic.ifindex, kRailRate * 45 / 100));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(ThrottleTest, IsUndoneByItsDestructor) {
  {
    const auto fault = makeTestFault("throttle", {{"rate", "5%"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_EQ(shaper(target_.nic).rate, kRailRate);
  EXPECT_EQ(shaper(target_.attachment).rate, kRailRate);
}

TEST_F(ThrottleTest, NotSlowerIsRefused) {
  EXPECT_EQ(makeTestFault("throttle", {{"rate", "200Mbit"}})->prepare().code(),
            Code::kInvalidArgument);
}

TEST_F(ThrottleTest, ALinkThatWeDidNotShapeIsRefused) {
  ASSERT_OK(netlink::removeShaper(*target_.nic.socket, target_.nic.ifindex));
  EXPECT_EQ(makeTestFault("throttle", {{"rate", "5%"}})->prepare().code(), Code::kUnsupported);
}

TEST_F(ThrottleTest, ControlOvertakesBulkOnAThrottledLink) {
  const auto fault = makeTestFault("throttle", {{"rate", "4Mbit"}, {"direction", "tx"}});
  ASSERT_OK(fault->prepare());
  const auto flow = startFlow(kTargetNode, 0);
  ASSERT_OK(fault->apply());
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return shaper(target_.nic).backlog > 50'000; }));
  // The time of one datagram from the target node to node 0, with and without the mark.
  const auto oneWay = [&](int tos) {
    const test::FlowEnd from = end(kTargetNode);
    const test::FlowEnd to = end(0);
    auto datagram = test::sendDatagram(from, to, tos, kLong);
    EXPECT_TRUE(datagram.ok()) << datagram.status().message();
    return datagram.ok() ? *datagram : kLong;
  };
  const Duration control = oneWay(cluster_->controlTos());
  const Duration bulk = oneWay(0);
  EXPECT_LT(control * 4, bulk) << toMilliseconds(control) << " ms against " << toMilliseconds(bulk);
}

class ShaperTest : public test::NetnsTest {};

TEST_F(ShaperTest, ForeignQueuesAreNeverReplaced) {
  ASSERT_OK_AND_ASSIGN(const UniqueFd fd, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(const UniqueFd other, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(netlink::Socket socket, netlink::Socket::open(fd.get()));
  ASSERT_OK(netlink::createVeth(socket, {"near", 100}, other.get(), {"far", 200}));
  ASSERT_OK(netlink::installShaper(socket, 100, 1'000'000));
  EXPECT_EQ(netlink::installShaper(socket, 100, 2'000'000).code(), Code::kAlreadyExists);
  ASSERT_OK_AND_ASSIGN(const auto state, netlink::readShaper(socket, 100));
  EXPECT_EQ(state.rate, 1'000'000);
  EXPECT_NEAR(static_cast<double>(state.burst), 16 * 1024, 16);
  ASSERT_OK(netlink::removeShaper(socket, 100));
  EXPECT_EQ(netlink::removeShaper(socket, 100).code(), Code::kNotFound);
  EXPECT_EQ(netlink::setShaperRate(socket, 100, 5).code(), Code::kNotFound);
}

TEST_F(ShaperTest, RatesAbove34GbitAreExact) {
  ASSERT_OK_AND_ASSIGN(const UniqueFd fd, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(const UniqueFd other, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(netlink::Socket socket, netlink::Socket::open(fd.get()));
  ASSERT_OK(netlink::createVeth(socket, {"near", 100}, other.get(), {"far", 200}));
  constexpr BitsPerSecond kFast = 100'000'000'000;
  ASSERT_OK(netlink::installShaper(socket, 100, kFast));
  ASSERT_OK_AND_ASSIGN(const auto state, netlink::readShaper(socket, 100));
  EXPECT_EQ(state.rate, kFast);
}

}  // namespace
}  // namespace faultline::injector

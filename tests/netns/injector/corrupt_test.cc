#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "injector/netlink/checksum_offload.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/packet_hook.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class CorruptTest : public FaultTest {
 protected:
  /// Segments that the kernel of a node has dropped for their checksum.
  std::int64_t wrongSegments(int node) {
    auto inside = netlink::ScopedNamespace::enter(cluster_->nodeNamespace(node));
    EXPECT_TRUE(inside.ok());
    std::ifstream file("/proc/thread-self/net/snmp");
    std::vector<std::string> names;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("Tcp:")) continue;
      std::istringstream words(line);
      std::vector<std::string> fields;
      for (std::string word; words >> word;) fields.push_back(word);
      if (names.empty()) {
        names = fields;
        continue;
      }
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == "InCsumErrors") return std::stoll(fields[i]);
      }
    }
    ADD_FAILURE() << "the kernel does not count them";
    return 0;
  }

  bool leavesChecksums(const netlink::LinkEnd& end) {
    const auto leaves = netlink::leavesChecksums(end);
    EXPECT_TRUE(leaves.ok()) << leaves.status().message();
    return leaves.ok() && *leaves;
  }
};

// Between two ends of a veth pair no checksum is computed: the fault has to change that, or damage
// could not be detected.
TEST_F(CorruptTest, DetectedDamageIsDroppedByTheReceiversKernel) {
  ASSERT_TRUE(leavesChecksums(target_.nic));
  for (const bool out : {true, false}) {
    const int sender = out ? kTargetNode : 0;
    const int receiver = out ? 0 : kTargetNode;
    const auto flow = startFlow(sender, receiver);
    const auto fault =
        makeTestFault("corrupt", {{"percent", "5%"}, {"direction", out ? "out" : "in"}});
    ASSERT_OK(fault->prepare());
    EXPECT_TRUE(leavesChecksums(target_.nic)) << "prepare changes nothing";
    const std::int64_t before = wrongSegments(receiver);
    ASSERT_OK(fault->apply());
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return wrongSegments(receiver) > before + 5; }));
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_TRUE(leavesChecksums(target_.nic));
    EXPECT_TRUE(leavesChecksums(target_.attachment));
    EXPECT_TRUE(targetCarriesTraffic());
  }
}

TEST_F(CorruptTest, SilentDamageReachesTheProgramAndNoKernelSeesIt) {
  const auto flow = startFlow(0, kTargetNode);
  const auto fault = makeTestFault("corrupt", {{"percent", "20%"}, {"how", "silent"}});
  ASSERT_OK(fault->prepare());
  const std::int64_t before = wrongSegments(kTargetNode);
  ASSERT_OK(fault->apply());
  const std::uint64_t bytes = flow->receivedBytes();
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return flow->receivedBytes() > bytes + 1'000'000; }));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_EQ(wrongSegments(kTargetNode), before);
}

TEST_F(CorruptTest, SharesFitInBothDirectionsAndBothWays) {
  for (const char* const how : {"detected", "silent"}) {
    for (const char* const percent : {"0.1%", "1%", "100%"}) {
      const auto fault = makeTestFault("corrupt", {{"percent", percent}, {"how", how}});
      ASSERT_OK(fault->prepare());
      ASSERT_OK(fault->apply());
      ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
      EXPECT_TRUE(evidence.ok) << how << " " << percent << ": " << evidence.observed;
      ASSERT_OK(fault->revert());
    }
  }
}

TEST_F(CorruptTest, WithoutEffectOrInTheOtherWayThereIsNoEvidence) {
  const auto fault = makeTestFault("corrupt", {{"percent", "30%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  const auto silent = makeTestFault("corrupt", {{"percent", "30%"}, {"how", "silent"}});
  ASSERT_OK(silent->prepare());
  ASSERT_OK(silent->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence other, fault->evidence());
  EXPECT_FALSE(other.ok) << other.observed;
}

TEST_F(CorruptTest, WithoutComputedChecksumsThereIsNoEvidenceOfDetection) {
  const auto fault = makeTestFault("corrupt", {{"percent", "30%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK(netlink::setLeavesChecksums(target_.nic, true));
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(CorruptTest, WhatCannotBeTakenBackHoldsUpNothingElse) {
  const auto fault = makeTestFault("corrupt", {{"percent", "30%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  const netlink::LinkEnd& port = target_.attachment;  // where the first way arrives
  ASSERT_OK(netlink::removeHook(*port.socket, port.ifindex));
  EXPECT_FALSE(fault->revert().ok()) << "its program was gone";
  EXPECT_TRUE(leavesChecksums(target_.nic));
  EXPECT_TRUE(leavesChecksums(target_.attachment));
  EXPECT_FALSE(netlink::removeHook(*target_.nic.socket, target_.nic.ifindex).ok())
      << "the second way still has its program";
  ASSERT_OK(netlink::addHook(*port.socket, port.ifindex));
  EXPECT_TRUE(fault->revert().ok()) << "only the first program is left";
  EXPECT_TRUE(fault->revert().ok());
}

TEST_F(CorruptTest, IsUndoneByItsDestructor) {
  {
    const auto fault = makeTestFault("corrupt", {{"percent", "50%"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    EXPECT_FALSE(leavesChecksums(target_.nic));
  }
  EXPECT_TRUE(leavesChecksums(target_.nic));
  EXPECT_TRUE(targetCarriesTraffic());
}

}  // namespace
}  // namespace faultline::injector

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
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

  /// What a program at the target gets of a datagram without a checksum from node 0; empty:
  /// nothing.
  std::string receivedWithoutChecksum(const std::string& sent) {
    const auto open = [&](int node) {
      auto inside = netlink::ScopedNamespace::enter(cluster_->nodeNamespace(node));
      EXPECT_TRUE(inside.ok());
      return UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    };
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(4000);
    EXPECT_EQ(::inet_pton(AF_INET, netns::railAddress(kTargetNode, 0).c_str(), &address.sin_addr),
              1);
    const auto* const where = reinterpret_cast<const sockaddr*>(&address);
    const UniqueFd receiver = open(kTargetNode);
    EXPECT_EQ(::bind(receiver.get(), where, sizeof address), 0);
    const UniqueFd sender = open(0);
    const int without = 1;
    EXPECT_EQ(::setsockopt(sender.get(), SOL_SOCKET, SO_NO_CHECK, &without, sizeof without), 0);
    EXPECT_EQ(::sendto(sender.get(), sent.data(), sent.size(), 0, where, sizeof address),
              static_cast<ssize_t>(sent.size()));
    std::string got(sent.size(), '\0');
    const bool came = test::pollUntil(kLong, [&] {
      return ::recv(receiver.get(), got.data(), got.size(), 0) == static_cast<ssize_t>(got.size());
    });
    return came ? got : "";
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

TEST_F(CorruptTest, DatagramsWithoutAChecksumAreDamagedSilentlyAndNeverDetected) {
  const std::string sent(64, 'x');
  for (const bool silent : {true, false}) {
    const auto fault =
        makeTestFault("corrupt", {{"percent", "100%"}, {"how", silent ? "silent" : "detected"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    const std::string got = receivedWithoutChecksum(sent);
    EXPECT_EQ(got.size(), sent.size()) << "silent: " << silent;
    EXPECT_EQ(got != sent, silent);
    ASSERT_OK(fault->revert());
  }
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

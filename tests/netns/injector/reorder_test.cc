#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "injector/faults/probe_order.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class ReorderTest : public FaultTest {
 protected:
  static constexpr int kSent = 600;
  static constexpr Duration kDelay = 5ms;  // the usual one of the fault

  /// What has become of numbered datagrams.
  struct Numbers {
    ProbeOrder order{kSent, kDelay};
    int twice = 0;
  };

  /// Sends datagrams from one node to another, and steps the fault meanwhile.
  Numbers sendNumbers(int from, int to, Fault* fault = nullptr) {
    const UniqueFd receiver = bound(to);
    const UniqueFd sender = bound(from);
    const sockaddr_in address = addressOf(to);
    Numbers numbers;
    std::vector<int> times(kSent);
    const auto look = [&] {
      if (fault != nullptr) EXPECT_OK(fault->step(now()));
      for (int number = 0; ::recv(receiver.get(), &number, sizeof number, 0) > 0;) {
        if (++times.at(static_cast<std::size_t>(number)) > 1) ++numbers.twice;
        numbers.order.hear(number, now());
      }
    };
    for (int i = 0; i < kSent; ++i) {
      numbers.order.send(now());
      EXPECT_EQ(::sendto(sender.get(), &i, sizeof i, 0, reinterpret_cast<const sockaddr*>(&address),
                         sizeof address),
                static_cast<ssize_t>(sizeof i));
      if (i % kAtOnce == 0) ::poll(nullptr, 0, 1);
      look();
    }
    (void)test::pollUntil(kLong, [&] {
      look();
      return numbers.order.arrived() >= kSent;
    });
    (void)test::pollUntil(50ms, [&] {  // a copy of the last
      look();
      return false;
    });
    return numbers;
  }

  /// A counter of TCP in the namespace of a node (/proc/net/netstat).
  std::int64_t tcpCounter(int node, const std::string& name) {
    auto inside = netlink::ScopedNamespace::enter(cluster_->nodeNamespace(node));
    EXPECT_TRUE(inside.ok());
    std::ifstream file("/proc/thread-self/net/netstat");
    std::string names;
    std::string values;
    while (std::getline(file, names) && std::getline(file, values)) {
      std::istringstream name_words(names);
      std::istringstream value_words(values);
      std::string word;
      std::string value;
      while (name_words >> word && value_words >> value) {
        if (word == name) return std::stoll(value);
      }
    }
    ADD_FAILURE() << name << " is not counted";
    return 0;
  }

  std::size_t linksOfTheSwitch() {
    const auto links = netlink::listNetDevices(*target_.attachment.socket);
    EXPECT_TRUE(links.ok());
    return links.ok() ? links->size() : 0;
  }

 private:
  static constexpr int kAtOnce = 8;

  UniqueFd bound(int node) {
    auto inside = netlink::ScopedNamespace::enter(cluster_->nodeNamespace(node));
    EXPECT_TRUE(inside.ok());
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_in address = addressOf(node);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  static sockaddr_in addressOf(int node) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(4000);
    EXPECT_EQ(::inet_pton(AF_INET, netns::railAddress(node, 0).c_str(), &address.sin_addr), 1);
    return address;
  }
};

TEST_F(ReorderTest, AShareOfTheDatagramsOfTheDirectionComesLateAndNoneIsLost) {
  const ProbeOrder usual = sendNumbers(kTargetNode, 0).order;
  ASSERT_EQ(usual.late(), 0);
  EXPECT_LE(usual.passed(), kSent / 20) << "or the judgement of a struck one says nothing";
  for (const bool out : {true, false}) {
    const int from = out ? kTargetNode : 0;
    const int to = out ? 0 : kTargetNode;
    const auto fault =
        makeTestFault("reorder", {{"percent", "30%"}, {"direction", out ? "out" : "in"}});
    ASSERT_OK(fault->prepare());
    EXPECT_EQ(sendNumbers(from, to).order.late(), 0) << "prepare changes nothing";
    ASSERT_OK(fault->apply());
    const Numbers struck = sendNumbers(from, to, fault.get());
    EXPECT_EQ(struck.order.arrived(), kSent);
    EXPECT_EQ(struck.twice, 0);
    EXPECT_GT(struck.order.late(), kSent / 6);
    EXPECT_LT(struck.order.late(), kSent / 2);
    EXPECT_EQ(sendNumbers(to, from, fault.get()).order.late(), 0) << "the other direction";
    EXPECT_EQ(sendNumbers(0, kPeerNode, fault.get()).order.late(), 0) << "not over the target";
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_EQ(sendNumbers(from, to).order.late(), 0);
  }
}

TEST_F(ReorderTest, AStreamGoesOnAndItsSegmentsComeOutOfOrder) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(kPeerNode, kTargetNode);
  const auto fault = makeTestFault("reorder", {{"percent", "10%"}});
  ASSERT_OK(fault->prepare());
  const std::int64_t queued = tcpCounter(0, "TCPOFOQueue");
  const std::int64_t queued_here = tcpCounter(kTargetNode, "TCPOFOQueue");
  ASSERT_OK(fault->apply());
  const std::uint64_t bytes = there->receivedBytes();
  const std::uint64_t bytes_back = back->receivedBytes();
  EXPECT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_OK(fault->step(now()));
    return tcpCounter(0, "TCPOFOQueue") > queued + 10 &&
           tcpCounter(kTargetNode, "TCPOFOQueue") > queued_here + 10 &&
           there->receivedBytes() > bytes + 1'000'000 &&
           back->receivedBytes() > bytes_back + 1'000'000;
  }));
}

TEST_F(ReorderTest, IsProvedAlsoUnderLoad) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(kPeerNode, kTargetNode);
  const std::vector<std::map<std::string, std::string>> strengths{
      {{"percent", "1%"}}, {{"percent", "30%"}, {"delay", "20ms"}}, {{"percent", "75%"}}};
  for (const auto& strength : strengths) {
    const auto fault = makeTestFault("reorder", strength);
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << strength.at("percent") << ": " << evidence.observed;
    ASSERT_OK(fault->revert());
  }
}

TEST_F(ReorderTest, WithoutEffectThereIsNoEvidence) {
  const auto fault = makeTestFault("reorder", {{"percent", "30%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
}

TEST_F(ReorderTest, AnotherShareDelayOrDirectionIsNoEvidence) {
  const std::map<std::string, std::string> asked{
      {"percent", "30%"}, {"delay", "10ms"}, {"direction", "out"}};
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"percent", "60%"}, {"delay", "40ms"}, {"direction", "both"}}) {
    SCOPED_TRACE(name);
    auto others = asked;
    others[name] = value;
    // Only looks: what it sees is made by the other one.
    const auto looking = makeTestFault("reorder", asked);
    const auto fault = makeTestFault("reorder", others);
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    const auto judge = [&](Fault& judging) {
      return test::pollUntil(2s, [&] {
        EXPECT_OK(fault->step(now()));
        return judging.evidence([] { return true; })->ok;
      });
    };
    EXPECT_FALSE(judge(*looking));
    EXPECT_TRUE(judge(*fault));
  }
}

TEST_F(ReorderTest, IsUndoneByItsDestructor) {
  const std::size_t links = linksOfTheSwitch();
  {
    const auto fault = makeTestFault("reorder", {{"percent", "50%"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    EXPECT_GT(sendNumbers(kTargetNode, 0, fault.get()).order.late(), 0);
  }
  const Numbers after = sendNumbers(kTargetNode, 0);
  EXPECT_EQ(after.order.arrived(), kSent);
  EXPECT_EQ(after.order.late(), 0);
  EXPECT_EQ(linksOfTheSwitch(), links);
}

}  // namespace
}  // namespace faultline::injector

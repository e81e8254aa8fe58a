#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/unique_fd.h"
#include "injector/netlink/namespace.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

class DuplicateTest : public FaultTest {
 protected:
  /// How many datagrams a program at the other end gets of `sent` that another one sends.
  int received(int from, int to, int sent) {
    const auto bound = [&](int node) {
      auto inside = netlink::ScopedNamespace::enter(cluster_->nodeNamespace(node));
      EXPECT_TRUE(inside.ok());
      UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const sockaddr_in address = addressOf(node);
      EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      return fd;
    };
    const UniqueFd receiver = bound(to);
    const UniqueFd sender = bound(from);
    const sockaddr_in address = addressOf(to);
    for (int i = 0; i < sent; ++i) {
      EXPECT_EQ(::sendto(sender.get(), &i, sizeof i, 0, reinterpret_cast<const sockaddr*>(&address),
                         sizeof address),
                static_cast<ssize_t>(sizeof i));
    }
    int count = 0;
    int last = -1;
    (void)test::pollUntil(kLong, [&] {
      for (int number = 0; ::recv(receiver.get(), &number, sizeof number, 0) > 0; ++count) {
        last = std::max(last, number);
      }
      return last == sent - 1 && count >= sent;
    });
    (void)test::pollUntil(100ms, [&] {  // a copy of the last
      for (char byte = 0; ::recv(receiver.get(), &byte, 1, 0) > 0;) ++count;
      return false;
    });
    return count;
  }

  static sockaddr_in addressOf(int node) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(4000);
    EXPECT_EQ(::inet_pton(AF_INET, netns::railAddress(node, 0).c_str(), &address.sin_addr), 1);
    return address;
  }
};

TEST_F(DuplicateTest, EveryDatagramOfTheDirectionArrivesTwiceAndNoOther) {
  constexpr int kSent = 50;
  ASSERT_EQ(received(kTargetNode, 0, kSent), kSent);
  for (const bool out : {true, false}) {
    const auto fault =
        makeTestFault("duplicate", {{"percent", "100%"}, {"direction", out ? "out" : "in"}});
    ASSERT_OK(fault->prepare());
    EXPECT_EQ(received(kTargetNode, 0, kSent), kSent) << "prepare changes nothing";
    ASSERT_OK(fault->apply());
    EXPECT_EQ(received(kTargetNode, 0, kSent), out ? 2 * kSent : kSent);
    EXPECT_EQ(received(0, kTargetNode, kSent), out ? kSent : 2 * kSent);
    EXPECT_EQ(received(0, kPeerNode, kSent), kSent) << "not over the target";
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
    EXPECT_EQ(received(kTargetNode, 0, kSent), kSent);
  }
}

TEST_F(DuplicateTest, AShareOfThePacketsArrivesTwiceAlsoUnderLoad) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(2, kTargetNode);
  for (const char* const percent : {"1%", "30%", "90%"}) {
    const auto fault = makeTestFault("duplicate", {{"percent", percent}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << percent << ": " << evidence.observed;
    ASSERT_OK(fault->revert());
  }
}

TEST_F(DuplicateTest, WithoutEffectOrWithAnotherShareThereIsNoEvidence) {
  const auto fault = makeTestFault("duplicate", {{"percent", "30%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  const auto other = makeTestFault("duplicate", {{"percent", "80%"}});
  ASSERT_OK(other->prepare());
  ASSERT_OK(other->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence more, fault->evidence());
  EXPECT_FALSE(more.ok) << more.observed;
}

TEST_F(DuplicateTest, IsUndoneByItsDestructor) {
  constexpr int kSent = 50;
  {
    const auto fault = makeTestFault("duplicate", {{"percent", "100%"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    EXPECT_EQ(received(kTargetNode, 0, kSent), 2 * kSent);
  }
  EXPECT_EQ(received(kTargetNode, 0, kSent), kSent);
}

}  // namespace
}  // namespace faultline::injector

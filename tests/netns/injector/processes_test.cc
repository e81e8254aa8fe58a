#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "injector/faults/node_processes.h"
#include "injector/netlink/address.h"
#include "tests/netns/injector/fault_fixture.h"

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;

/// A process inside a namespace that does nothing, or works without end; gone with this object. It
/// inherits all descriptors, so it also holds the sockets of flows that were started before.
class Inhabitant {
 public:
  explicit Inhabitant(int namespace_fd, bool busy = false, const char* variable = nullptr)
      : pid_(::fork()) {
    if (pid_ != 0) return;
    if (::setns(namespace_fd, CLONE_NEWNET) != 0) ::_exit(1);
    if (variable != nullptr) {
      const char* const environment[]{"A=b", variable, nullptr};
      ::execle("/bin/sleep", "sleep", "1000", nullptr, environment);
      ::_exit(1);
    }
    while (true) {
      if (!busy) ::pause();
    }
  }
  ~Inhabitant() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  /// In the state that this letter of proc(5) means.
  bool is(char state) const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid_));
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && line.substr(name_end + 2, 1)[0] == state;
  }

 private:
  pid_t pid_;
};

class ProcessFaultTest : public FaultTest {
 protected:
  int targetNamespace() const { return cluster_->nodeNamespace(kTargetNode); }
  /// Whether the fault has told that its target is broken now, or whole.
  static bool saysBroken(const Fault& fault) {
    return !fault.transitions().empty() && fault.transitions().back().broken;
  }
  /// Waits until the child has arrived.
  void awaitInhabitants(std::size_t count) {
    ASSERT_TRUE(test::pollUntil(kLong, [&] {
      const auto found = processesIn(targetNamespace());
      return found.ok() && found->size() == count;
    }));
  }
};

TEST_F(ProcessFaultTest, StopsAllProcessesOfTheNodeAndNoOthersAgainAndAgain) {
  const Inhabitant idle(targetNamespace());
  const Inhabitant busy(targetNamespace(), /*busy=*/true);
  const Inhabitant neighbour(cluster_->nodeNamespace(0), /*busy=*/true);
  awaitInhabitants(2);
  const auto fault = makeTestFault("process_stop");
  ASSERT_OK(fault->prepare());
  for (int strike = 0; strike < 2; ++strike) {
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    EXPECT_TRUE(idle.is('T'));
    EXPECT_TRUE(busy.is('T'));
    EXPECT_FALSE(neighbour.is('T'));
    EXPECT_TRUE(saysBroken(*fault));
    ASSERT_OK(fault->revert());
    EXPECT_FALSE(saysBroken(*fault));
    EXPECT_FALSE(idle.is('T'));
    EXPECT_FALSE(busy.is('T'));
  }
}

TEST_F(ProcessFaultTest, OnlyThoseThatWereStartedWithTheVariableAreMeant) {
  const Inhabitant meant(targetNamespace(), /*busy=*/false, "NUMBER=1");
  const Inhabitant other(targetNamespace(), /*busy=*/false, "NUMBER=12");
  const Inhabitant without(targetNamespace());
  const Inhabitant elsewhere(cluster_->nodeNamespace(0), /*busy=*/false, "NUMBER=1");
  awaitInhabitants(3);
  target_.startedWith = {"NUMBER=1"};
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    const auto found = processesOf(target_);
    return found.ok() && found->size() == 1 && found->front().pid() == meant.pid();
  }));
  for (const auto& [kind, state] : {std::pair("process_stop", 'T'), {"process_kill", 'Z'}}) {
    const auto fault = makeTestFault(kind);
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    EXPECT_TRUE(meant.is(state)) << kind;
    for (const Inhabitant* const spared : {&other, &without, &elsewhere}) {
      EXPECT_TRUE(spared->is('S')) << kind;
    }
    ASSERT_OK(fault->revert());
  }
}

TEST_F(ProcessFaultTest, AProcessThatGoesOnIsNoEvidence) {
  const Inhabitant busy(targetNamespace(), /*busy=*/true);
  awaitInhabitants(1);
  const auto fault = makeTestFault("process_stop");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  ASSERT_OK(fault->apply());
  ::kill(busy.pid(), SIGCONT);  // somebody else lets it go on
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
}

TEST_F(ProcessFaultTest, StoppedProcessesGoOnWhenTheFaultIsDestroyed) {
  const Inhabitant idle(targetNamespace());
  awaitInhabitants(1);
  {
    const auto fault = makeTestFault("process_stop");
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return !idle.is('T'); }));
}

TEST_F(ProcessFaultTest, NothingToActUponIsNoEvidence) {
  for (const char* const kind : {"process_stop", "process_kill", "connection_reset"}) {
    const auto fault = makeTestFault(kind);
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
    EXPECT_FALSE(nothing.ok) << nothing.observed;
    ASSERT_OK(fault->revert());
  }
}

TEST_F(ProcessFaultTest, KillsAllProcessesOfTheNodeAndNoOthers) {
  const Inhabitant idle(targetNamespace());
  const Inhabitant busy(targetNamespace(), /*busy=*/true);
  const Inhabitant neighbour(cluster_->nodeNamespace(0));
  awaitInhabitants(2);
  const auto fault = makeTestFault("process_kill");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_TRUE(idle.is('Z'));
  EXPECT_TRUE(busy.is('Z'));
  EXPECT_FALSE(neighbour.is('Z'));
  EXPECT_TRUE(saysBroken(*fault));
  ASSERT_OK(fault->revert());
  EXPECT_FALSE(saysBroken(*fault));
}

class ConnectionResetTest : public ProcessFaultTest {};

TEST_F(ConnectionResetTest, OneConnectionDiesTheOthersAndThePortLive) {
  const auto busiest = startFlow(kTargetNode, 0);
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return busiest->receivedBytes() > 5'000'000; }));
  const auto other = startFlow(2, kTargetNode);
  const auto elsewhere = startFlow(0, 2);
  const auto fault = makeTestFault("connection_reset");
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  EXPECT_EQ(fault->transitions().size(), 1u);
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_TRUE(stops(*busiest));
  EXPECT_GT(other->measure(200ms), 0);
  EXPECT_GT(elsewhere->measure(200ms), 0);
  EXPECT_TRUE(saysBroken(*fault));
  ASSERT_OK(fault->revert());
  EXPECT_FALSE(saysBroken(*fault));
  EXPECT_TRUE(targetCarriesTraffic());
}

TEST_F(ConnectionResetTest, AllConnectionsOfTheNicAndOnlyThose) {
  const auto there = startFlow(kTargetNode, 0);
  const auto back = startFlow(2, kTargetNode);
  const auto elsewhere = startFlow(0, 2);
  auto other_rail = test::BulkFlow::start(end(kTargetNode, 1), end(0, 1));
  ASSERT_TRUE(other_rail.ok());
  const auto fault = makeTestFault("connection_reset", {{"connections", "all"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_TRUE(stops(*there));
  EXPECT_TRUE(stops(*back));
  EXPECT_GT(elsewhere->measure(200ms), 0);
  EXPECT_GT((*other_rail)->measure(200ms), 0);
  std::set<std::string> peers;
  for (const Transition& transition : fault->transitions()) peers.insert(transition.peer);
  EXPECT_EQ(peers, (std::set{netns::railAddress(0, 0), netns::railAddress(2, 0)}));
}

TEST_F(ConnectionResetTest, AHalfCloseIsAFinAndNoReset) {
  const auto flow = startFlow(kTargetNode, 0);
  const Inhabitant holder(targetNamespace());  // shares the socket
  awaitInhabitants(1);
  const auto fault = makeTestFault("connection_reset", {{"how", "half_close"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_NE(evidence.observed.find("1 ended at the switch's port with a FIN"), std::string::npos)
      << evidence.observed;
  EXPECT_TRUE(stops(*flow));
  EXPECT_TRUE(saysBroken(*fault));
}

TEST_F(ConnectionResetTest, WithoutEffectThereIsNoEvidence) {
  const auto flow = startFlow(kTargetNode, 0);
  const auto fault = makeTestFault("connection_reset");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
}

class HostOverloadTest : public FaultTest {};

TEST_F(HostOverloadTest, OthersWaitMostOfTheTimeAndAfterwardsNot) {
  const auto fault = makeTestFault("host_overload");
  const Status prepared = fault->prepare();
  if (prepared.code() == Code::kUnsupported) GTEST_SKIP() << prepared.message();
  ASSERT_TRUE(prepared.ok()) << prepared.toString();
  ASSERT_OK_AND_ASSIGN(const Evidence idle, fault->evidence());
  EXPECT_FALSE(idle.ok) << "it was not applied: " << idle.observed;
  for (int strike = 0; strike < 2; ++strike) {
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
  }
}

class AddressChangeTest : public FaultTest {
 protected:
  std::vector<std::string> addresses() {
    const auto found = netlink::listAddresses(*target_.nic.socket, target_.nic.ifindex);
    std::vector<std::string> texts;
    for (const auto& address : *found) texts.push_back(address.toString());
    return texts;
  }
};

TEST_F(AddressChangeTest, TheNicComesBackWithAnotherAddressAndIsRestored) {
  const auto fault = makeTestFault("address_change", {{"down", "50ms"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_EQ(addresses(), std::vector<std::string>{"10.1.128.2"});
  ASSERT_OK(fault->revert());
  EXPECT_EQ(addresses(), std::vector<std::string>{netns::railAddress(kTargetNode, 0)});
  EXPECT_TRUE(targetCarriesTraffic());
  // Down, up with the new one; down, up with the old one.
  ASSERT_EQ(fault->transitions().size(), 4u);
}

TEST_F(AddressChangeTest, ASecondStrikeKnowsNothingOfTheFirst) {
  const auto fault = makeTestFault("address_change", {{"down", "50ms"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const Evidence first, fault->evidence());
  EXPECT_TRUE(first.ok) << first.observed;
  ASSERT_OK(fault->revert());
  ASSERT_OK(fault->apply());
  // Asked before the port comes up, and not waited for.
  ASSERT_OK_AND_ASSIGN(const Evidence early, fault->evidence([] { return true; }));
  EXPECT_FALSE(early.ok) << early.observed;
  EXPECT_THAT(early.observed, HasSubstr("lost its carrier 0 times"));
  EXPECT_THAT(early.observed, HasSubstr("the NIC gave 0 answers"));
  ASSERT_OK_AND_ASSIGN(const Evidence second, fault->evidence());
  EXPECT_TRUE(second.ok) << second.observed;
}

TEST_F(AddressChangeTest, IsUndoneWhileThePortIsStillDown) {
  {
    const auto fault = makeTestFault("address_change", {{"down", "10s"}});
    ASSERT_OK(fault->prepare());
    ASSERT_OK(fault->apply());
  }
  EXPECT_EQ(addresses(), std::vector<std::string>{netns::railAddress(kTargetNode, 0)});
  EXPECT_TRUE(targetCarriesTraffic());
}

TEST_F(AddressChangeTest, WithoutEffectThereIsNoEvidence) {
  const auto fault = makeTestFault("address_change");
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const Evidence nothing, fault->evidence());
  EXPECT_FALSE(nothing.ok) << nothing.observed;
}

}  // namespace
}  // namespace faultline::injector

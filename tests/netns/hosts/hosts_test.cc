#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/netns/hosts/hosts_fixture.h"

// Runs on hosts that ssh reaches, in a laboratory of three with two rails (ci/labs/hosts.sh), and
// on this machine for all of them: what comes of a run, where its bytes go, and how it ends when a
// part of it dies. What happens inside is in laboratory.sh beside this file.

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(HostsTest, ARunMovesItsDataOverTheRailsAndLeavesNothing) {
  constexpr int kIterations = 60;
  writeScenario(kIterations);
  IN_LABORATORY("run");
  EXPECT_THAT(printed_, AllOf(HasSubstr("rail_0: found: rail0 (10.1.0.0/24"),
                              HasSubstr("rail_1: found: rail1 (10.2.0.0/24"),
                              HasSubstr("management: mgmt (10.0.0.0/24")));
  const reports::ScenarioResult all = result();
  EXPECT_EQ(all.verdict, reports::Verdict::kPass);
  ASSERT_EQ(all.runs.size(), 1U);
  const reports::Run& run = all.runs.front();
  EXPECT_EQ(run.wrong_elements, 0);
  EXPECT_GT(run.checked_elements, 0);
  EXPECT_EQ(run.iterations.size(), std::size_t{kIterations});

  // Each of three hosts sends what a ring of three sends: 4/3 of the data.
  const std::int64_t payload = std::int64_t{kIterations} * (2 << 20) * 4;
  const std::int64_t rails = told("rail0") + told("rail1");
  EXPECT_GT(rails, payload);
  EXPECT_LT(rails, payload * 5 / 4);
  EXPECT_GT(told("rail0"), payload / 5);
  EXPECT_GT(told("rail1"), payload / 5);
  EXPECT_LT(told("mgmt"), payload / 50) << "payload went over the management network";
  std::int64_t counted = 0;
  for (const reports::RailTotals& rail : run.rails) counted += rail.tx_bytes;
  EXPECT_GT(counted, payload * 99 / 100) << "what the result has";
  EXPECT_LT(counted, rails) << "with the warm-up";

  const auto& environment = all.environment.qdisc;
  EXPECT_THAT(environment.at("rail_0"), HasSubstr("rail0"));
  EXPECT_THAT(environment.at("not_rails"), HasSubstr("mgmt of n0 is the management network"));
  EXPECT_THAT(environment.at("host_2"), AllOf(HasSubstr("n2: n2"), HasSubstr("to within")));
  EXPECT_THAT(environment.at("faults"), HasSubstr("none can be made"));
}

TEST_F(HostsTest, ThisMachineForAllOfThem) {
  const std::string file =
      writeScenario(20, "cluster: {kind: hosts, launcher: local, hosts: [a, b, c]}");
  // In a network of its own: who has this machine has all of it.
  const std::vector<std::string> network =
      ::geteuid() == 0 ? std::vector<std::string>{"-n"} : std::vector<std::string>{"-r", "-n"};
  const auto inside = [&](std::vector<std::string> command) {
    command.insert(command.begin(), network.begin(), network.end());
    return testing::runProgram("/usr/bin/unshare", command, folder_.path());
  };
  if (const testing::Ran made = inside({"true"}); made.exit != 0) GTEST_SKIP() << made.err;
  const testing::Ran ran =
      inside({"sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && exec \"$0\" \"$@\"",
              FAULTLINE_BINARY_DIR "/faultline", "run", file, "--out", out()});
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::ScenarioResult all = result();
  EXPECT_EQ(all.verdict, reports::Verdict::kPass);
  EXPECT_EQ(all.runs.front().wrong_elements, 0);
  EXPECT_GT(all.runs.front().checked_elements, 0);
  EXPECT_THAT(all.environment.qdisc.at("rails"), HasSubstr("loopback"));
}

TEST_F(HostsTest, TheResultNamesTheHostWhoseAgentIsKilled) {
  writeScenario(kEndless);
  IN_LABORATORY("agent");
  EXPECT_EQ(told("exit"), 1);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kFailed);
  EXPECT_THAT(run.message,
              AllOf(HasSubstr("host n1 (node 1) is lost"), HasSubstr("is not heard any more"),
                    HasSubstr(" s after the start")));
}

TEST_F(HostsTest, AndTheOneWhoseSshSessionIsKilled) {
  writeScenario(kEndless);
  IN_LABORATORY("session");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(result().runs.front().message,
              AllOf(HasSubstr("host n2 (node 2) is lost"), HasSubstr("is not heard any more")));
}

TEST_F(HostsTest, AHostThatIsSilentIsLostAndItsAgentEndsByItself) {
  writeScenario(kEndless);
  IN_LABORATORY("silence");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(result().runs.front().message,
              AllOf(HasSubstr("host n1 (node 1) is lost"), HasSubstr("has not answered for 2s")));
}

TEST_F(HostsTest, AHostThatNobodyReachesAnyMoreIsLostAndNotItsPeersAtFault) {
  writeScenario(kEndless);
  IN_LABORATORY("ports");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(result().runs.front().message, HasSubstr("host n1 (node 1) is lost"));
}

TEST_F(HostsTest, TheCommandOfTheDocumentRunsTheScenarioThatIsThere) {
  IN_LABORATORY("document");
  EXPECT_THAT(printed_, HasSubstr("scenarios/hosts.yaml"));
  EXPECT_EQ(result().verdict, reports::Verdict::kPass);
}

TEST_F(HostsTest, CtrlCEndsAllOfThem) {
  writeScenario(kEndless);
  IN_LABORATORY("interrupt");
  constexpr int kInterrupted = 130;
  EXPECT_EQ(told("exit"), kInterrupted);
  EXPECT_TRUE(result().interrupted);
}

TEST_F(HostsTest, ACrashOfTheControllerEndsAllOfThem) {
  writeScenario(kEndless);
  IN_LABORATORY("crash");
}

TEST_F(HostsTest, WhatKeepsAHostFromServingIsTold) {
  writeScenario(20);
  IN_LABORATORY("trouble");
  EXPECT_THAT(printed_, HasSubstr("banner 3: "));
  EXPECT_THAT(printed_, HasSubstr("says 'Welcome' before the agent"));
  EXPECT_THAT(printed_, AllOf(HasSubstr("unknown 3: "), HasSubstr("host n9: no agent is there")));
  EXPECT_THAT(printed_, AllOf(HasSubstr("missing 3: "), HasSubstr("/nowhere/faultline")));
  EXPECT_THAT(printed_, AllOf(HasSubstr("rail 3: "), HasSubstr("has no interface rail7: it has")));
}

TEST_F(HostsTest, TwoRunsDoNotShareAHost) {
  writeScenario(kEndless);
  IN_LABORATORY("two");
  EXPECT_THAT(printed_, AllOf(HasSubstr("second 3: "),
                              HasSubstr("another run uses this host: run 'hosts' of "),
                              HasSubstr(" UTC (process ")));
  EXPECT_EQ(told("left"), 2 * kHosts) << "the first run goes on";
}

}  // namespace
}  // namespace faultline

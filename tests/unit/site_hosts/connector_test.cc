#include "harness/site/hosts/connector.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/version.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"
#include "wire/message.h"

// How many connections are on their way at a time. The ssh here is a script: it leaves a file,
// waits until that is gone, and then greets as an agent.

namespace faultline::hosts {
namespace {

using faultline::test::pollUntil;
using ::testing::HasSubstr;

constexpr int kHosts = 20;

class ConnectorTest : public ::testing::Test {
 protected:
  ConnectorTest() {
    std::filesystem::create_directory(waiting());
    const std::string script =
        folder_.write("ssh", fmt::format("#!/bin/sh\n"
                                         "for last; do host=$waits; waits=$last; done\n"
                                         "echo $$ >{0}/$host.new && mv {0}/$host.new {0}/$host\n"
                                         "while [ -e {0}/$host ]; do sleep 0.01; done\n"
                                         "[ -e {1}/refuse ] && {{ echo no way >&2; exit 255; }}\n"
                                         "printf '\\001faultline-agent {2} {3}\\n'\n"
                                         "cat >/dev/null\n",
                                         waiting(), folder_.path().string(), versionNumber(),
                                         wire::kAgentVersion));
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    spec_.launcher = findLauncher("ssh");
    spec_.ssh = {script};
    for (int host = 0; host < kHosts; ++host) spec_.names.push_back(fmt::format("n{}", host));
  }
  std::string waiting() const { return (folder_.path() / "waiting").string(); }
  std::set<std::string> onTheirWay() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(waiting())) {
      if (entry.path().extension() != ".new") names.insert(entry.path().filename());
    }
    return names;
  }
  /// Until so many wait.
  bool untilOnTheirWay(Connector& connector, std::size_t count) {
    return pollUntil(60s, [&] {
      for (Connector::Arrived& arrived : connector.step(1ms)) take(std::move(arrived));
      return onTheirWay().size() >= count;
    });
  }
  void take(Connector::Arrived arrived) {
    if (!arrived.connection.ok()) {
      refused_ = arrived.connection.status().message();
      return;
    }
    EXPECT_TRUE(hosts_.insert(arrived.host).second);
    connections_.push_back(*std::move(arrived.connection));
  }

  testing::TemporaryFolder folder_;
  HostsSpec spec_;
  std::set<int> hosts_;
  std::vector<Connection> connections_;
  std::string refused_;
};

TEST_F(ConnectorTest, TheNextBeginsAsOneHasCome) {
  Connector connector(spec_, "/faultline");
  constexpr auto kMost = std::size_t{Connector::kMostAtOnce};
  while (hosts_.size() < kHosts) {
    const std::size_t left = kHosts - hosts_.size();
    ASSERT_TRUE(untilOnTheirWay(connector, std::min(left, kMost)));
    const std::set<std::string> now = onTheirWay();
    EXPECT_LE(now.size(), kMost);
    EXPECT_FALSE(connector.done());
    std::filesystem::remove(waiting() + "/" + *now.begin());
    const std::size_t before = hosts_.size();
    ASSERT_TRUE(pollUntil(60s, [&] {
      for (Connector::Arrived& arrived : connector.step(1ms)) take(std::move(arrived));
      return hosts_.size() > before;
    }));
  }
  EXPECT_TRUE(connector.done());
}

TEST_F(ConnectorTest, OneThatFailsNamesItsHostAndTheOthersComeAllTheSame) {
  spec_.names = {"n0", "n1"};
  Connector connector(spec_, "/faultline");
  ASSERT_TRUE(untilOnTheirWay(connector, 2));
  const std::string refuse = folder_.write("refuse", "");
  std::filesystem::remove(waiting() + "/n1");
  ASSERT_TRUE(pollUntil(60s, [&] {
    for (Connector::Arrived& arrived : connector.step(1ms)) take(std::move(arrived));
    return !refused_.empty();
  }));
  EXPECT_THAT(refused_, HasSubstr("host n1: no agent is there"));
  EXPECT_THAT(refused_, HasSubstr("no way"));
  std::filesystem::remove(refuse);
  std::filesystem::remove(waiting() + "/n0");
  ASSERT_TRUE(pollUntil(60s, [&] {
    for (Connector::Arrived& arrived : connector.step(1ms)) take(std::move(arrived));
    return connector.done();
  }));
  EXPECT_EQ(hosts_, std::set<int>{0});
}

TEST_F(ConnectorTest, WhoeverIsOnItsWayIsKilledAtOnceAndWhatItHasStarted) {
  std::vector<pid_t> processes;
  {
    Connector connector(spec_, "/faultline");
    ASSERT_TRUE(untilOnTheirWay(connector, Connector::kMostAtOnce));
    for (const std::string& name : onTheirWay()) {
      std::ifstream file(waiting() + "/" + name);
      file >> processes.emplace_back();
    }
  }
  for (const pid_t process : processes) {
    EXPECT_GT(process, 0);
    // What it waits with, too: all of its group.
    EXPECT_TRUE(pollUntil(10s, [&] { return ::kill(-process, 0) != 0; }));
  }
}

}  // namespace
}  // namespace faultline::hosts

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/site/agent_processes.h"
#include "harness/site/agents.h"
#include "tests/netns/run/run_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/process_tree.h"
#include "tests/support/victim.h"

// The agents of a run's nodes: what becomes of it without one.

namespace faultline::run {
namespace {

using test::ProcessId;
using test::Victim;

constexpr const char* kAgentBinary = FAULTLINE_BINARY_DIR "/faultline";
constexpr Duration kInTime = 20s;

class AgentTest : public RunTest {
 protected:
  void SetUp() override { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  /// A run that does not end by itself, once its ranks, or programs, run.
  std::unique_ptr<Victim> start(const std::string& text) {
    return start(text, {}, [this] { return std::ranges::count_if(tree_, isOfNode) >= kNodes; });
  }
  std::unique_ptr<Victim> startTraining() { return start(longTraining()); }
  /// One of whose processes those with this first argument hang from their start on, once one does.
  std::unique_ptr<Victim> startHanging(const std::string& which) {
    const std::vector<std::string> environment{
        "/usr/bin/env", fmt::format("LD_PRELOAD={}", FAULTLINE_HANG_AT_START),
        "FAULTLINE_TEST_HANGS=" + which};
    return start(longTraining(), environment, [&] {
      return std::ranges::any_of(tree_, [&](const ProcessId& process) {
        return commandOf(process) == which &&
               textOf(process, "status").find("State:\tT") != std::string::npos;
      });
    });
  }

  /// In the order of nodes, in which they are started.
  std::vector<pid_t> agents() const {
    std::vector<pid_t> found;
    for (const ProcessId& process : tree_) {
      if (commandOf(process) == "agent" && isChildOf(process, tree_.front())) {
        found.push_back(process.pid);
      }
    }
    std::ranges::sort(found);
    return found;
  }

  void expectTheEnd(Victim& victim) {
    ASSERT_TRUE(test::pollUntil(kInTime, [&] {
      siginfo_t info{};
      return ::waitid(P_PID, static_cast<id_t>(victim.pid()), &info, WEXITED | WNOHANG | WNOWAIT) ==
                 0 &&
             info.si_pid == victim.pid();
    }));
    expectThatNothingIsLeft();
  }

  /// Ctrl-C ends it, long before what hangs would be waited for no longer.
  void expectThatCtrlCEndsIt(Victim& victim, Duration usual) {
    ::kill(-victim.pid(), SIGINT);  // as the terminal does: to the whole group
    const TimePoint asked = now();
    int status = 0;
    ASSERT_EQ(::waitpid(victim.pid(), &status, 0), victim.pid());
    EXPECT_LT(now() - asked, usual / 2);
    EXPECT_EQ(WEXITSTATUS(status), 130) << victim.printed();
    EXPECT_TRUE(result().interrupted);
    expectThatNothingIsLeft();
  }
  void expectThatNothingIsLeft() {
    EXPECT_TRUE(test::pollUntil(2s, [&] {
      return std::ranges::all_of(tree_, [](const ProcessId& one) { return test::isGone(one); });
    })) << "a process is left";
  }

  static constexpr int kNodes = 3;
  std::vector<ProcessId> tree_;

 private:
  template <typename Condition>
  std::unique_ptr<Victim> start(const std::string& text, std::vector<std::string> words,
                                Condition runs) {
    const std::string file = folder_.write("scenario.yaml", text);
    words.insert(words.end(), {kAgentBinary, "run", file, "--out", out()});
    auto victim = std::make_unique<Victim>(words, Victim::Listen::kStderr);
    EXPECT_TRUE(victim->awaitOutput("[1/1] ", kInTime));
    EXPECT_TRUE(test::pollUntil(kInTime, [&] {
      tree_ = test::processTree(victim->pid());
      return runs();
    }));
    return victim;
  }
  static std::string longTraining() {
    std::string text = scenarioText("[fault_free]", "[]");
    text.replace(text.find("iterations: 20"), 14, "iterations: 9999");
    return text;
  }
  static std::string textOf(const ProcessId& process, const char* file) {
    std::ifstream in(fmt::format("/proc/{}/{}", process.pid, file), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Its first argument.
  static std::string commandOf(const ProcessId& process) {
    const std::string line = textOf(process, "cmdline");
    const std::size_t begin = line.find('\0');
    return begin == std::string::npos ? "" : std::string(line.c_str() + begin + 1);
  }
  static bool isChildOf(const ProcessId& process, const ProcessId& parent) {
    return textOf(process, "status").find(fmt::format("PPid:\t{}\n", parent.pid)) !=
           std::string::npos;
  }
  static bool isOfNode(const ProcessId& process) {
    const std::string command = commandOf(process);
    return command == "rank" || command == "60";
  }
};

TEST_F(AgentTest, OneThatIsKilledEndsTheRunAndItsNodeIsNamed) {
  const auto victim = startTraining();
  ASSERT_EQ(agents().size(), std::size_t{kNodes});
  ::kill(agents()[1], SIGKILL);
  EXPECT_TRUE(
      victim->awaitOutput("the agent of node 1 is gone: killed by signal 9 (Killed)", kInTime))
      << victim->printed();
  expectTheEnd(*victim);
}

TEST_F(AgentTest, SoDoesThatOfANodeWithPrograms) {
  const auto victim = start(fmt::format(R"(version: 1
name: programs
cluster: {{kind: netns, nodes: {}, rails: 1}}
workload: {{kind: command, command: {{run: [sleep, "60"]}}}}
strategies: [unprotected]
limits: {{deadline: 60s}}
)",
                                        kNodes));
  ASSERT_EQ(agents().size(), std::size_t{kNodes});
  ::kill(agents()[2], SIGKILL);
  EXPECT_TRUE(
      victim->awaitOutput("the agent of node 2 is gone: killed by signal 9 (Killed)", kInTime))
      << victim->printed();
  expectTheEnd(*victim);
}

TEST_F(AgentTest, OneThatHangsDoesNotHoldTheRunForEver) {
  const auto victim = startTraining();
  ASSERT_EQ(agents().size(), std::size_t{kNodes});
  ::kill(agents()[0], SIGSTOP);
  expectThatCtrlCEndsIt(*victim, site::AgentProcesses::kKillBudget);
  EXPECT_TRUE(
      victim->awaitOutput("the agent of node 0 has not answered for 1s, and was killed", kInTime))
      << victim->printed();
}

TEST_F(AgentTest, ThoseThatHangWhenTheWorkIsDoneAreNamed) {
  std::string text = scenarioText("[fault_free]", "[]");
  text.replace(text.find("iterations: 20"), 14, "iterations: 100");
  const auto victim = start(text);
  ASSERT_EQ(agents().size(), std::size_t{kNodes});
  for (const int node : {0, 2}) ::kill(agents()[static_cast<std::size_t>(node)], SIGSTOP);
  EXPECT_TRUE(
      victim->awaitOutput("the agent of node 0 has not answered for 3s, and was killed; the "
                          "agent of node 2 has not answered for 3s, and was killed",
                          kInTime))
      << victim->printed();
  expectTheEnd(*victim);
}

TEST_F(AgentTest, CtrlCDoesNotWaitForOneThatHangsFromTheStart) {
  const auto victim = startHanging("agent");
  expectThatCtrlCEndsIt(*victim, site::Agents::kReadyBudget);
}

TEST_F(AgentTest, NorForARankThatNeverReports) {
  const auto victim = startHanging("rank");
  constexpr Duration kDeadline = 30s;  // of the scenario
  expectThatCtrlCEndsIt(*victim, kDeadline);
}

TEST_F(AgentTest, SignalsForTheWholeRunAreNotForIt) {
  const auto victim = startTraining();
  const std::vector<pid_t> all = agents();
  ASSERT_EQ(all.size(), std::size_t{kNodes});
  for (const pid_t agent : all) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::kill(agent, number);
  }
  EXPECT_FALSE(victim->awaitOutput("the agent", 500ms)) << victim->printed();
  EXPECT_EQ(agents(), all);
  ::kill(victim->pid(), SIGINT);
  EXPECT_TRUE(victim->awaitOutput("interrupted", kInTime)) << victim->printed();
  expectTheEnd(*victim);
}

TEST_F(AgentTest, ItIsOutsideOfTheNetworkOfItsNodeInWhichItsRanksAre) {
  const auto victim = startTraining();
  const auto network = [](pid_t pid) {
    char name[64] = {};
    const std::string link = fmt::format("/proc/{}/ns/net", pid);
    EXPECT_GT(::readlink(link.c_str(), name, sizeof name - 1), 0);
    return std::string(name);
  };
  int ranks = 0;
  for (const ProcessId& process : tree_) {
    const bool ours = process.pid == victim->pid() || std::ranges::count(agents(), process.pid) > 0;
    EXPECT_EQ(network(process.pid) == network(::getpid()), ours);
    ranks += ours ? 0 : 1;
  }
  EXPECT_EQ(ranks, kNodes);
}

}  // namespace
}  // namespace faultline::run

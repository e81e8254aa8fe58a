#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/netns/hosts/hosts_fixture.h"

// What hosts do to a run, and to the machine that controls it, when they are many, log without end,
// have clocks of their own, are gone before the run has begun, or are flooded.

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ManyHostsTest : public HostsTest {
 protected:
  std::string textOf(const std::string& name) const {
    std::ifstream file(folder_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ManyHostsTest, LightAgentsOnThisMachineStartAnswerAndEnd) {
  constexpr int kMany = 128;
  std::vector<std::string> names;
  for (int host = 0; host < kMany; ++host) names.push_back(fmt::format("h{}", host));
  const std::string file = folder_.write(
      "many.yaml", fmt::format("cluster: {{kind: hosts, launcher: local, hosts: [{}]}}\n",
                               fmt::join(names, ", ")));
  const testing::Ran ran = testing::runFaultline({"doctor", "--cluster", file, "--json"});
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const auto look = nlohmann::json::parse(ran.out);
  ASSERT_EQ(look.at("hosts").size(), std::size_t{kMany});
  constexpr std::int64_t kMostMemory = 8 << 20;  // light: a rank has more
  for (const auto& host : look.at("hosts")) {
    EXPECT_TRUE(host.at("usable").get<bool>());
    EXPECT_GT(host.at("agent_memory_bytes").get<std::int64_t>(), 0);
    EXPECT_LT(host.at("agent_memory_bytes").get<std::int64_t>(), kMostMemory);
  }
}

TEST_F(ManyHostsTest, ALookTellsOfEachHostAndGoesOnWithoutThoseThatFail) {
  IN_LABORATORY("look");
  EXPECT_EQ(told("exit"), 3);
  EXPECT_THAT(printed_, AllOf(HasSubstr("n9: host n9: no agent is there"),
                              HasSubstr("rail_0: found: rail0 (10.1.0.0/24"),
                              HasSubstr("3 of 4 hosts can be used")));
  const auto look = nlohmann::json::parse(textOf("look.json"));
  ASSERT_EQ(look.at("hosts").size(), 4U);
  EXPECT_FALSE(look.at("usable").get<bool>());
  const auto& last = look.at("hosts").at(3);
  EXPECT_EQ(last.at("hostname"), "n2");
  EXPECT_EQ(last.at("management"), "mgmt 10.0.0.3");
  EXPECT_EQ(last.at("rails"), nlohmann::json({"rail0 10.1.0.3", "rail1 10.2.0.3"}));
  EXPECT_EQ(look.at("hosts").at(1).at("usable"), false);
}

TEST_F(ManyHostsTest, AJumpHostWithTheUsualLimitLetsAllThrough) {
  constexpr int kBehindIt = 16;
  // All beyond it are turned away, and not only most.
  IN_LABORATORY("jump", kBehindIt + 1, {"LAB_SSHD=MaxStartups 10"});
  EXPECT_THAT(printed_, HasSubstr(fmt::format("{0} of {0} hosts can be used", kBehindIt)));
}

TEST_F(ManyHostsTest, CtrlCEndsThoseThatAreOnTheirWay) {
  writeScenario(kEndless);
  IN_LABORATORY("cut");
  constexpr int kInterrupted = 130;
  EXPECT_EQ(told("exit"), kInterrupted);
  EXPECT_TRUE(result().interrupted);
}

TEST_F(ManyHostsTest, ARankThatPrintsWithoutEndFillsNoDiskAndStopsNoRun) {
  writeScenario(60);
  IN_LABORATORY("endless");
  EXPECT_EQ(told("exit"), 0);
  const std::string log = textOf("result/log.txt");
  EXPECT_THAT(log, HasSubstr("n1 rank 1 (job "));
  EXPECT_THAT(log, HasSubstr("): a rank prints \\x1b[31m without end\n"));
  EXPECT_THAT(log, HasSubstr(" bytes are left out here]"));
  EXPECT_LT(log.size(), std::size_t{2} << 20);
}

TEST_F(ManyHostsTest, AHostThatCannotBeReachedLeavesAResultThatNamesIt) {
  writeScenario(20);
  IN_LABORATORY("trouble");
  const reports::ScenarioResult all = result(folder_.path() / "result-unknown");
  EXPECT_EQ(all.verdict, reports::Verdict::kError);
  EXPECT_TRUE(all.runs.empty());
  EXPECT_THAT(all.reason, AllOf(HasSubstr("host n9: no agent is there"), HasSubstr("resolve"),
                                HasSubstr(" s after the start, before the first run")));
  EXPECT_THAT(textOf("result-unknown/log.txt"), HasSubstr("host n9: no agent is there"));
}

TEST_F(ManyHostsTest, SoDoesOneThatIsLostWhileTheRunIsSetUp) {
  writeScenario(20);
  IN_LABORATORY("early");
  EXPECT_THAT(printed_, HasSubstr("early 3: "));
  const reports::ScenarioResult all = result(folder_.path() / "result-early");
  EXPECT_EQ(all.verdict, reports::Verdict::kError);
  EXPECT_THAT(all.reason, AllOf(HasSubstr("host n1"), HasSubstr("exit code 9"),
                                HasSubstr(" s after the run began to be set up")));
}

TEST_F(ManyHostsTest, ClocksThatAreFarApartAreJoinedRightly) {
  writeScenario(60);
  IN_LABORATORY("run", kHosts, {"LAB_CLOCKS=0 1000 -20"});
  const reports::ScenarioResult all = result();
  EXPECT_EQ(all.verdict, reports::Verdict::kPass);
  // "n1: ..., clock +1000.001 s ahead of the controller's, to within 0.4 ms"
  EXPECT_THAT(all.environment.qdisc.at("host_1"),
              ::testing::ContainsRegex("clock \\+(1000|999\\.9)[0-9.]* s ahead"));
  EXPECT_THAT(all.environment.qdisc.at("host_2"),
              ::testing::ContainsRegex("clock -(20|19\\.9)[0-9.]* s ahead"));
  // Iterations follow each other on the controller's clock, whoever told of them.
  const reports::Run& run = all.runs.front();
  double end = 0;
  for (const reports::Iteration& iteration : run.iterations) {
    EXPECT_GE(iteration.start_ms, end - 1);
    end = iteration.start_ms + iteration.ms;
  }
  EXPECT_LT(end, 100'000) << "no moment is of another clock";
}

TEST_F(ManyHostsTest, HostsAreNotLookedForFromANetworkOfItsOwn) {
  const std::string file =
      writeScenario(20, "cluster: {kind: hosts, launcher: local, hosts: [a, b]}");
  // Root of a user namespace that does not own the network that it is in: as somebody who is not
  // root.
  const auto asNobody = [&](std::vector<std::string> command) {
    command.insert(command.begin(), {"-r", FAULTLINE_BINARY_DIR "/faultline", "run"});
    return testing::runProgram("/usr/bin/unshare", command, folder_.path());
  };
  const testing::Ran mixed =
      asNobody({FAULTLINE_SOURCE_DIR "/scenarios/quickstart.yaml", file, "--out", out()});
  if (mixed.err.find("unshare") == 0) GTEST_SKIP() << mixed.err;
  EXPECT_EQ(mixed.exit, 2);
  EXPECT_THAT(mixed.err, AllOf(HasSubstr(file + " needs the network of this machine"),
                               HasSubstr("run them by two commands, or as root")));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(ManyHostsTest, ConnectionsThatNeverSayAWordStopNoRun) {
  writeScenario(600);
  IN_LABORATORY("flood");
  EXPECT_EQ(told("exit"), 0);
  constexpr std::int64_t kFlood = 10'000;
  EXPECT_GE(told("flooded"), kFlood);
  EXPECT_GT(result().runs.front().counters.at("connections_rejected"), 0);
}

}  // namespace
}  // namespace faultline

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "harness/site/hosts/hostlist.h"
#include "tests/netns/hosts/hosts_fixture.h"

// Runs on hosts whose agents srun and mpirun start (ci/labs/slurm.sh, hosts.sh): what comes of
// them, and how they end when a part dies. With ssh: hosts_test.cc.

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class LaunchersTest : public HostsTest {
 protected:
  /// As with ssh: data over the rails, and little besides over the management network.
  void expectAWholeRun() const {
    EXPECT_THAT(printed_, HasSubstr("management: mgmt (10.0.0.0/24"));
    const reports::ScenarioResult all = result();
    EXPECT_EQ(all.verdict, reports::Verdict::kPass);
    ASSERT_EQ(all.runs.size(), 1U);
    EXPECT_EQ(all.runs.front().wrong_elements, 0);
    EXPECT_GT(all.runs.front().checked_elements, 0);
    // Each of three hosts sends what a ring of three sends: 4/3 of the data.
    const std::int64_t payload = std::int64_t{kIterations} * (2 << 20) * 4;
    EXPECT_GT(told("rail0") + told("rail1"), payload);
    EXPECT_LT(told("mgmt"), payload / 50) << "payload went over the management network";
    EXPECT_THAT(all.environment.qdisc.at("host_2"),
                AllOf(HasSubstr("n2: n2"), HasSubstr("to within")));
  }
  std::string messageOfTheRun() const { return result().runs.front().message; }

  static constexpr int kIterations = 60;
};

TEST_F(LaunchersTest, SlurmRunsItInAnAllocation) {
  writeScenario(kIterations);
  IN_LABORATORY("run", "slurm");
  expectAWholeRun();
  EXPECT_THAT(result().environment.qdisc.at("cluster"), HasSubstr("srun"));
}

TEST_F(LaunchersTest, MpirunRunsItOverSsh) {
  writeScenario(kIterations);
  IN_LABORATORY("run", "mpirun");
  expectAWholeRun();
  EXPECT_THAT(result().environment.qdisc.at("cluster"), HasSubstr("mpirun"));
}

TEST_F(LaunchersTest, AJobThatIsCancelledEndsTheRunAndIsToldAsTheReason) {
  writeScenario(kEndless);
  IN_LABORATORY("cancel", "slurm");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(messageOfTheRun(),
              AllOf(HasSubstr("is lost"), HasSubstr("the job, or the agent's step of it, "),
                    AnyOf(HasSubstr("has been cancelled"), HasSubstr("is being cancelled"))));
}

TEST_F(LaunchersTest, AStepThatIsKilledIsALostHost) {
  writeScenario(kEndless);
  IN_LABORATORY("step", "slurm");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(messageOfTheRun(), HasSubstr("host n1 (node 1) is lost"));
}

TEST_F(LaunchersTest, AgentsThatAreKilledAreToldByTheirLauncher) {
  writeScenario(kEndless);
  IN_LABORATORY("agent", "slurm");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(messageOfTheRun(), AllOf(HasSubstr("host n1 (node 1) is lost"),
                                       HasSubstr("srun: error: n1: task 0: Killed")));
}

TEST_F(LaunchersTest, AlsoByMpirun) {
  writeScenario(kEndless);
  IN_LABORATORY("agent", "mpirun");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(messageOfTheRun(), HasSubstr("host n1 (node 1) is lost"));
}

TEST_F(LaunchersTest, ALauncherThatIsKilledTakesItsAgentAlong) {
  for (const char* const launcher : {"slurm", "mpirun"}) {
    SCOPED_TRACE(launcher);
    writeScenario(kEndless);
    IN_LABORATORY("killed", launcher);
    EXPECT_EQ(told("exit"), 1);
    EXPECT_THAT(messageOfTheRun(),
                AllOf(HasSubstr("host n0 (node 0) is lost"), HasSubstr("killed by signal 9")));
    std::filesystem::remove_all(out());
  }
}

TEST_F(LaunchersTest, TheRunGoesOnWithoutADaemonOfSlurm) {
  writeScenario(kEndless);
  IN_LABORATORY("daemon", "slurm");
  constexpr int kInterrupted = 130;
  EXPECT_EQ(told("exit"), kInterrupted);
}

TEST_F(LaunchersTest, CtrlCAndACrashOfTheControllerEndAllOfThem) {
  for (const char* const launcher : {"slurm", "mpirun"}) {
    SCOPED_TRACE(launcher);
    writeScenario(kEndless);
    IN_LABORATORY("interrupt", launcher);
    constexpr int kInterrupted = 130;
    EXPECT_EQ(told("exit"), kInterrupted);
    EXPECT_TRUE(result().interrupted);
    std::filesystem::remove_all(out());
    IN_LABORATORY("crash", launcher);
  }
}

struct HowTo {
  const char* heading;
  const char* laboratory;
  const char* user;
  int blocks;
};

TEST_F(LaunchersTest, TheDocumentLeadsFromNothingToAReport) {
  for (const HowTo& howTo :
       {HowTo{"Slurm", "slurm.sh", "alice", 2}, HowTo{"ssh", "hosts.sh", "root", 1},
        HowTo{"MPI", "hosts.sh", "root", 1}, HowTo{"This machine", "hosts.sh", "root", 1}}) {
    SCOPED_TRACE(howTo.heading);
    OR_RETURN(
        runIn(howTo.laboratory, {FAULTLINE_SOURCE_DIR "/tests/netns/hosts/how_to.sh",
                                 FAULTLINE_BINARY_DIR "/faultline", howTo.heading, howTo.user}));
    EXPECT_EQ(told("passed"), howTo.blocks);
  }
}

/// A list as Slurm may write it, or a user.
std::string anyHostlist(std::mt19937& random) {
  const auto upTo = [&random](int most) { return static_cast<int>(random() % (most + 1U)); };
  std::string list;
  for (int word = upTo(3); word >= 0; --word) {
    list += list.empty() ? "" : ",";
    list += std::string(1, "nxr"[upTo(2)]) + (upTo(2) == 0 ? "-" : "");
    std::string ranges;
    for (int range = upTo(3); range > 0; --range) {
      const int low = upTo(120);
      ranges += fmt::format("{}{:0{}}", ranges.empty() ? "" : ",", low, 1 + upTo(3));
      if (upTo(2) != 0) ranges += fmt::format("-{}", low + upTo(12));
    }
    if (ranges.empty()) continue;
    if (upTo(4) == 0) list += fmt::format("[{}-{}]s", upTo(1), 2 + upTo(1));
    list += "[" + ranges + "]";
  }
  return list;
}

TEST_F(LaunchersTest, ListsOfHostsAreThoseOfScontrol) {
  constexpr int kLists = 100;
  std::vector<std::string> lists;
  std::string file;
  for (int seed = 0; seed < kLists; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    lists.push_back(anyHostlist(random));
    file += lists.back() + "\n";
  }
  folder_.write("lists", file);
  OR_RETURN(runIn("slurm.sh", {"sh", "-c",
                               "while read -r list; do scontrol show hostnames \"$list\" | "
                               "paste -s -d ' '; done <lists"}));
  std::istringstream lines(printed_);
  for (const std::string& list : lists) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line)) << list;
    const auto names = hosts::expandHostlist(list);
    ASSERT_TRUE(names.ok()) << names.status().message();
    EXPECT_EQ(fmt::format("{}", fmt::join(*names, " ")), line) << list;
  }
}

}  // namespace
}  // namespace faultline

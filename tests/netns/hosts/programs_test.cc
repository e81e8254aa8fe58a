#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_text.h"
#include "tests/netns/hosts/hosts_fixture.h"

// Programs that are not ours on hosts, which share no folder with the controller, and folders that
// hosts share with each other: programs.sh beside this file. Each case ends with a look for what is
// left of it on all hosts.

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgramsTest : public HostsTest {
 protected:
  reports::Run onlyRun() const {
    const reports::ScenarioResult all = result();
    if (all.runs.size() != 1) throw std::runtime_error("there are not one run");
    return all.runs.front();
  }
  /// What a process has printed, as the result has it.
  std::string printedBy(int rank, const std::string& file = "stdout.txt") const {
    return fileText(fmt::format("{}/command-fault_free-0/rank{}/{}", out(), rank, file));
  }
};

TEST_F(ProgramsTest, ARingOfSixIsToldWhereItIsAndTellsWhatItDid) {
  IN_LABORATORY("ring");
  EXPECT_EQ(told("exit"), 0) << printed_;
  const reports::Run run = onlyRun();
  EXPECT_EQ(run.status, reports::RunStatus::kOk);
  ASSERT_EQ(run.processes.size(), 6U);
  EXPECT_EQ(run.metrics.at("rounds").value, 40);
  constexpr int kSumOfRanks = 15;
  EXPECT_EQ(run.metrics.at("sum").value, kSumOfRanks) << "of a file that is on no shared folder";
  EXPECT_EQ(run.iterations.size(), 40U) << "of a progress file, likewise";
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_THAT(
        printedBy(rank),
        AllOf(HasSubstr(fmt::format("RANK={} LOCAL_RANK={} ", rank, rank % 2)),
              HasSubstr("FAULTLINE_INTERFACES=rail0,rail1"),
              HasSubstr(fmt::format("FAULTLINE_ADDRESS=10.0.0.{} ", rank / 2 + 1)),
              HasSubstr(fmt::format("CUDA_VISIBLE_DEVICES={} ", rank % 2)), HasSubstr("HOSTED=yes"),
              HasSubstr(fmt::format("-{}/rank{}\n", rank / 2, rank))));
    EXPECT_EQ(printedBy(rank, "progress").substr(0, 6), "0\n1\n2\n");
  }
  std::int64_t carried = 0;
  for (const reports::RailTotals& rail : run.rails) carried += rail.rail == 0 ? rail.tx_bytes : 0;
  EXPECT_GT(carried, 40 * 2 * 3 * 8) << "the rounds went over rail 0";
}

TEST_F(ProgramsTest, TheScenarioWithIperf3RunsBetweenTwoHosts) {
  IN_LABORATORY("iperf3");
  EXPECT_EQ(told("exit"), 0) << printed_;
  const reports::Run run = onlyRun();
  EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
  ASSERT_EQ(run.processes.size(), 2U);
  EXPECT_GT(run.metrics.at("goodput").value, 0);
  std::int64_t sent = 0;
  for (const reports::RailTotals& rail : run.rails) {
    if (rail.node == 0 && rail.rail == 0) sent = rail.tx_bytes;
  }
  EXPECT_GT(static_cast<double>(sent) * 8, run.metrics.at("goodput").value / 2)
      << "what it says was carried by the rail that it was told";
}

TEST_F(ProgramsTest, NothingIsLeftOfThemWhenAnAgentIsKilled) {
  IN_LABORATORY("programs_agent");
  EXPECT_EQ(told("exit"), 1);
  EXPECT_THAT(onlyRun().message, HasSubstr("host n1 (node 1) is lost"));
}

TEST_F(ProgramsTest, AFolderThatWasLeftIsRemovedByTheNextRunWhichTellsIt) {
  IN_LABORATORY("programs_all");
  EXPECT_THAT(printed_, AllOf(HasSubstr("removed "), HasSubstr("which an earlier run had left")));
}

TEST_F(ProgramsTest, CtrlCEndsThemAlsoWhenTheyIgnoreSignalsAndPrintWithoutEnd) {
  IN_LABORATORY("programs_interrupt");
  constexpr int kInterrupted = 130;
  EXPECT_EQ(told("exit"), kInterrupted);
}

TEST_F(ProgramsTest, ACrashOfTheControllerEndsThem) { IN_LABORATORY("programs_crash"); }

TEST_F(ProgramsTest, ThoseThatDoNotEndHang) {
  IN_LABORATORY("programs_hung");
  EXPECT_EQ(told("exit"), 1) << printed_;
  const reports::Run run = onlyRun();
  EXPECT_EQ(run.status, reports::RunStatus::kHung);
  EXPECT_THAT(run.message, HasSubstr("not over within 1s"));
  EXPECT_THAT(printedBy(1).substr(0, 4), "1\n1\n");
}

TEST_F(ProgramsTest, OneThatTellsItsProgressWithoutAPauseHangsAndNothingElseDoes) {
  IN_LABORATORY("programs_fast");
  EXPECT_EQ(told("exit"), 1) << printed_;
  const reports::Run run = onlyRun();
  EXPECT_EQ(run.status, reports::RunStatus::kHung) << run.message;
  constexpr std::int64_t kMost = 17 << 20;
  EXPECT_GT(told("brought"), 0);
  EXPECT_LT(told("brought"), kMost);
}

TEST_F(ProgramsTest, AFolderThatTakesLongToRemoveIsNoHostThatIsLost) {
  IN_LABORATORY("programs_busy");
  EXPECT_EQ(told("exit"), 0) << printed_;
  EXPECT_EQ(onlyRun().status, reports::RunStatus::kOk) << onlyRun().message;
}

TEST_F(ProgramsTest, WhatTheyPrintIsCutAsEverywhere) {
  IN_LABORATORY("programs_cut");
  const reports::Run run = onlyRun();
  EXPECT_EQ(run.status, reports::RunStatus::kInvalid);
  EXPECT_THAT(run.message, AllOf(HasSubstr("rank0/stdout.txt is cut"), HasSubstr(out())));
  constexpr std::size_t kKept = 16 << 20;
  EXPECT_EQ(printedBy(0).size(), kKept);
}

TEST_F(ProgramsTest, WhatIsMissingIsToldOfEachHost) {
  IN_LABORATORY("programs_missing");
  constexpr int kCannotRun = 3;
  EXPECT_EQ(told("exit"), kCannotRun);
  EXPECT_THAT(printed_, AllOf(HasSubstr("host n1: there is no program '/"), HasSubstr("own/tool'"),
                              HasSubstr("host n2: there is no /"), HasSubstr("other/lib.so"),
                              Not(HasSubstr("host n0:"))));
}

TEST_F(ProgramsTest, TheRightsOfAUserAreEnough) {
  IN_LABORATORY("programs_user");
  EXPECT_EQ(told("exit"), 0) << printed_;
  const reports::Run run = onlyRun();
  EXPECT_EQ(run.status, reports::RunStatus::kOk);
  EXPECT_EQ(run.metrics.at("uid").value, 65534) << "who it is";
}

TEST_F(ProgramsTest, CheckpointsAreSavedInTheFolderThatHostsShareAndGoWithTheRun) {
  writeScenario(300);
  IN_LABORATORY("checkpoints");
  EXPECT_EQ(told("exit"), 0) << printed_;
  EXPECT_EQ(told("shared"), 0);
  EXPECT_EQ(onlyRun().wrong_elements, 0);
}

TEST_F(ProgramsTest, AndAlsoWithOneThatIsInterrupted) {
  writeScenario(kEndless);
  IN_LABORATORY("checkpoints_interrupt");
  EXPECT_EQ(told("shared"), 0);
}

TEST_F(ProgramsTest, AFolderThatAHostDoesNotShareIsRefusedWithItsName) {
  writeScenario(20);
  IN_LABORATORY("unshared");
  EXPECT_THAT(printed_, AllOf(HasSubstr("unshared 3: "), HasSubstr("host n2 does not share")));
  EXPECT_THAT(printed_, AllOf(HasSubstr("readonly 3: "), HasSubstr("host n1 does not share"),
                              HasSubstr("Read-only file system")));
  EXPECT_EQ(told("shared"), 0);
}

}  // namespace
}  // namespace faultline

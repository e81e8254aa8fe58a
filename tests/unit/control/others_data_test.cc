#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/input_file.h"
#include "harness/control/killed_runs.h"
#include "harness/control/output_folder.h"
#include "reports/renderer.h"
#include "tests/support/run_program.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// What others have put into a folder that a run is to write into, under names that runs use.
class OthersDataTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() / "out"; }
  std::string in(const std::string& name) const { return path() + "/" + name; }
  void SetUp() override { fs::create_directory(path()); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(in(name)).parent_path());
    folder_.write("out/" + name, text);
  }
  void expectThere(const std::string& name, const std::string& text) const {
    const auto there = readFile(in(name));
    ASSERT_TRUE(there.ok()) << name << " is gone: " << there.status().message();
    EXPECT_EQ(*there, text) << name;
  }
  static std::string whyNot(const Result<OutputFolder>& folder) {
    return folder.ok() ? "" : folder.status().message();
  }
  /// A run that comes to `end` or, with -1, is killed in the middle.
  void runThere(std::uint64_t seed, Earlier earlier = Earlier::kRefused) const {
    auto folder = OutputFolder::claim(path(), earlier);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    reports::ScenarioResult result;
    result.seed = seed;
    ASSERT_TRUE(folder->render(result).ok());
    ASSERT_TRUE(folder->replaceEarlier().ok());
  }
  /// A run that is killed when it has made a checkpoint and a part of its result.
  void killOneThere() const {
    const pid_t child = ::fork();
    if (child == 0) {
      auto folder = OutputFolder::claim(path());
      if (!folder.ok() || !folder->makeFolder("checkpoints-0").ok()) ::_exit(1);
      write("checkpoints-0/rank0", "state");
      std::ofstream(folder->logPath()) << "     0.013 s  [1/4] block 1, fault_free ...\n";
      ::raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  const testing::TemporaryFolder folder_;
};

TEST_F(OthersDataTest, AFolderWithNamesOfOursIsNoKilledRun) {
  write("log.txt", "my own notes");
  write("summary.md", "mine");
  write("checkpoints-7b/model.pt", "weights");
  EXPECT_EQ(sweepKilledRuns(folder_.path()), 0);
  expectThere("log.txt", "my own notes");
  expectThere("summary.md", "mine");
  expectThere("checkpoints-7b/model.pt", "weights");
}

TEST_F(OthersDataTest, AnEmptyLogProvesNothing) {
  write("log.txt", "");
  write("results.csv", "mine");
  write("checkpoints-1000/model.pt", "weights");
  EXPECT_THAT(whyNot(OutputFolder::claim(path())), HasSubstr("is not of a run of faultline"));
  expectThere("results.csv", "mine");
  expectThere("checkpoints-1000/model.pt", "weights");
}

TEST_F(OthersDataTest, AKilledRunLeavesNoRightToWhatStandsBesideIt) {
  killOneThere();
  write("summary.md", "mine");
  write("checkpoints-7b/model.pt", "weights");
  EXPECT_EQ(sweepKilledRuns(folder_.path()), 0);
  EXPECT_THAT(whyNot(OutputFolder::claim(path())), HasSubstr("summary.md is not of a run"));
  expectThere("summary.md", "mine");
  expectThere("checkpoints-7b/model.pt", "weights");
  fs::remove(in("summary.md"));
  runThere(1);  // in its place: of the killed one nothing is left
  EXPECT_FALSE(fs::exists(in("checkpoints-0")));
  expectThere("checkpoints-7b/model.pt", "weights");
}

TEST_F(OthersDataTest, ForceReplacesTheResultAndNothingBesideIt) {
  runThere(1);
  write("checkpoints-7b/model.pt", "weights");
  write("command-notes/todo", "mine");
  write("collectives.txt", "mine");
  EXPECT_THAT(whyNot(OutputFolder::claim(path(), Earlier::kReplaced)),
              HasSubstr("collectives.txt is not of a run"));
  expectThere("collectives.txt", "mine");
  fs::remove(in("collectives.txt"));
  runThere(2, Earlier::kReplaced);
  expectThere("checkpoints-7b/model.pt", "weights");
  expectThere("command-notes/todo", "mine");
  EXPECT_FALSE(fs::exists(in("unfinished")));
  EXPECT_THAT(*readFile(in("result.json")), HasSubstr("\"seed\": 2"));
}

TEST_F(OthersDataTest, WhatWasRemovedIsNotOursWhenItComesAgain) {
  {
    auto folder = OutputFolder::claim(path());
    ASSERT_TRUE(folder.ok());
    ASSERT_TRUE(folder->makeFolder("checkpoints-0").ok());
    ASSERT_TRUE(folder->removeFolder("checkpoints-0").ok());
    ASSERT_TRUE(folder->render({}).ok());
  }
  write("checkpoints-0/model.pt", "weights");
  runThere(2, Earlier::kReplaced);
  expectThere("checkpoints-0/model.pt", "weights");
  const auto needed = OutputFolder::claim(path(), Earlier::kReplaced, {"checkpoints-0"});
  EXPECT_THAT(whyNot(needed), HasSubstr("checkpoints-0 is not of a run"));
}

TEST_F(OthersDataTest, OfAResultWithoutARecordFilesAreReplacedAndNothingIsRemoved) {
  ASSERT_TRUE(reports::renderAll({}, path()).ok());
  write("collectives.txt", "old");
  write("command-hot_repair-0/rank0/out", "old");
  EXPECT_THAT(whyNot(OutputFolder::claim(path())), HasSubstr("--force"));
  for (const std::uint64_t seed : {2, 3}) {
    runThere(seed, Earlier::kReplaced);
    EXPECT_THAT(*readFile(in("result.json")), HasSubstr(fmt::format("\"seed\": {}", seed)));
    expectThere("collectives.txt", "old");
    expectThere("command-hot_repair-0/rank0/out", "old");
  }
}

TEST_F(OthersDataTest, AFinishedRunThatLostItsResultIsNoKilledOne) {
  runThere(1);
  fs::remove(in("result.json"));
  EXPECT_EQ(sweepKilledRuns(folder_.path()), 0);
  EXPECT_TRUE(fs::exists(in("report.html")));
}

// A number that looks like a process is in many names of backups.
TEST_F(OthersDataTest, FilesThatLookHalfWrittenAreOfTheWritersOfTheRecordOnly) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string backup = fmt::format("result.json.{}-1", gone);
  write(backup, "mine");
  runThere(1);
  runThere(2, Earlier::kReplaced);
  expectThere(backup, "mine");
}

}  // namespace
}  // namespace faultline::run

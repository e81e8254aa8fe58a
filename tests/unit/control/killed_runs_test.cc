#include "harness/control/killed_runs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "harness/control/output_folder.h"
#include "reports/result_json.h"
#include "tests/support/run_program.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

class KilledRunsTest : public ::testing::Test {
 protected:
  std::string make(const std::string& name) const {
    const std::string path = (folder_.path() / name).string();
    fs::create_directory(path);
    return path;
  }
  /// A run that is killed in the middle: its process.
  static pid_t runAndKill(const std::string& path) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto folder = OutputFolder::claim(path);
      if (!folder.ok() || !folder->makeFolder("checkpoints-0").ok()) ::_exit(1);
      std::ofstream(path + "/checkpoints-0/rank0") << "state";
      auto record = MadeEntries::read(openFolder(path)->get(), path);
      if (!record.ok() || !record->begin().ok() || !record->add("result.json").ok()) ::_exit(1);
      std::ofstream(fmt::format("{}/result.json.{}-0", path, ::getpid())) << "{";
      ::raise(SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    return child;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(KilledRunsTest, TheFolderOfARunThatWasKilledGoes) {
  const std::string killed = make("killed");
  runAndKill(killed);
  ASSERT_FALSE(fs::is_empty(killed));
  EXPECT_EQ(sweepKilledRuns(folder_.path()), 1);
  EXPECT_FALSE(fs::exists(killed));
  EXPECT_EQ(sweepKilledRuns(folder_.path()), 0);
}

TEST_F(KilledRunsTest, WhatIsWhollyThereOrNotOursOrBeingWrittenStays) {
  const std::string whole = make("whole"), foreign = make("foreign"), open = make("open"),
                    empty = make("empty"), linked = make("linked");
  runAndKill(whole);
  ASSERT_TRUE(reports::writeResult({}, whole).ok());
  runAndKill(foreign);
  std::ofstream(foreign + "/notes.md") << "somebody's";
  runAndKill(linked);
  fs::remove(linked + "/log.txt");
  fs::create_symlink("/dev/null", linked + "/log.txt");
  const auto running = OutputFolder::claim(open);
  ASSERT_TRUE(running.ok());
  std::ofstream(folder_.path() / "file") << "no folder";
  EXPECT_EQ(sweepKilledRuns(folder_.path()), 0);
  for (const std::string& path : {whole, foreign, open, empty, linked}) {
    EXPECT_TRUE(fs::exists(path)) << path;
  }
  EXPECT_TRUE(fs::exists(foreign + "/notes.md"));
}

TEST_F(KilledRunsTest, TheNextRunInTheSameFolderSweepsWhatWasHalfWritten) {
  const std::string path = make("again");
  const pid_t killed = runAndKill(path);
  const std::string half = fmt::format("{}/result.json.{}-0", path, killed);
  ASSERT_TRUE(fs::exists(half));
  ASSERT_TRUE(OutputFolder::claim(path).ok());
  EXPECT_FALSE(fs::exists(half));
}

}  // namespace
}  // namespace faultline::run

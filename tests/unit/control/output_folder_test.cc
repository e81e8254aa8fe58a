#include "harness/control/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <thread>

#include "base/input_file.h"
#include "reports/renderer.h"
#include "reports/result_json.h"
#include "tests/support/run_program.h"

namespace faultline::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class OutputFolderTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() / "out"; }
  std::string in(const std::string& name) const { return path() + "/" + name; }
  void SetUp() override { fs::create_directory(path()); }
  void write(const std::string& name, const std::string& text) const {
    folder_.write("out/" + name, text);
  }
  /// A run that came to its end, whose seed tells it from others.
  void finishOne(std::uint64_t seed) const {
    auto folder = OutputFolder::claim(path());
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    reports::ScenarioResult result;
    result.seed = seed;
    ASSERT_TRUE(folder->makeFolder("command-gone-0").ok());
    ASSERT_TRUE(folder->render(result).ok());
  }
  std::uint64_t seedThere() const { return reports::readResult(path())->seed; }
  std::string whyNot(Earlier earlier = Earlier::kRefused,
                     const std::set<std::string>& needed = {}) const {
    const std::string checked = OutputFolder::check(path(), earlier, needed).message();
    const auto claimed = OutputFolder::claim(path(), earlier, needed);
    const std::string why = claimed.ok() ? "" : claimed.status().message();
    EXPECT_EQ(checked, why) << "what is checked is what is claimed";
    return why;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(OutputFolderTest, ItIsOfOneExperimentAtATime) {
  {
    const auto first = OutputFolder::claim(path());
    ASSERT_TRUE(first.ok()) << first.status().message();
    const auto second = OutputFolder::claim(path(), Earlier::kReplaced);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), Code::kAlreadyExists);
    EXPECT_THAT(second.status().message(), HasSubstr("--out"));
  }
  EXPECT_TRUE(OutputFolder::claim(path()).ok());
}

TEST_F(OutputFolderTest, AnExperimentThatIsJustEndingIsWaitedFor) {
  auto first = OutputFolder::claim(path());
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::thread ending([&] {
    ::poll(nullptr, 0, 100);
    [[maybe_unused]] const OutputFolder gone = std::move(*first);
  });
  const auto second = OutputFolder::claim(path());
  ending.join();
  EXPECT_TRUE(second.ok()) << second.status().message();
}

TEST_F(OutputFolderTest, AnEarlierResultIsRefusedUnlessItIsToBeReplaced) {
  finishOne(1);
  write("report.html", "old");
  EXPECT_THAT(whyNot(), AllOf(HasSubstr("has an earlier result"), HasSubstr("--force")));
  EXPECT_EQ(seedThere(), 1u);
  EXPECT_EQ(*readFile(in("report.html")), "old");
  EXPECT_EQ(whyNot(Earlier::kReplaced), "");
}

TEST_F(OutputFolderTest, AnEarlierResultStaysUntilTheNewOneIsWhole) {
  finishOne(1);
  for (const char* name : {"report.html", "notes.md"}) write(name, "old");
  write("command-gone-0/rank0", "old");
  auto folder = OutputFolder::claim(path(), Earlier::kReplaced);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  ASSERT_TRUE(folder->replaces());
  reports::ScenarioResult result;
  result.seed = 2;
  ASSERT_TRUE(folder->render(result).ok());
  ASSERT_TRUE(folder->makeFolder("command-new-0").ok());
  EXPECT_EQ(seedThere(), 1u);
  EXPECT_EQ(*readFile(in("report.html")), "old");

  const Status status = folder->replaceEarlier();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(folder->path(), path());
  EXPECT_EQ(seedThere(), 2u);
  EXPECT_NE(*readFile(in("report.html")), "old");
  EXPECT_TRUE(fs::exists(in("command-new-0")));
  for (const char* name : {"command-gone-0", "unfinished"}) {
    EXPECT_FALSE(fs::exists(in(name))) << name << " is of the earlier one";
  }
  EXPECT_EQ(*readFile(in("notes.md")), "old") << "somebody else's";
}

TEST_F(OutputFolderTest, AFileOfTheEarlierResultWithoutASuccessorGoes) {
  finishOne(1);
  {
    auto record = MadeEntries::read(openFolder(path())->get(), path());
    ASSERT_TRUE(record.ok() && record->begin().ok() && record->add("collectives.txt").ok());
  }
  write("collectives.txt", "old");
  auto folder = OutputFolder::claim(path(), Earlier::kReplaced);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  ASSERT_TRUE(folder->render({}).ok());
  EXPECT_TRUE(fs::exists(in("collectives.txt")));
  ASSERT_TRUE(folder->replaceEarlier().ok());
  EXPECT_FALSE(fs::exists(in("collectives.txt")));
}

TEST_F(OutputFolderTest, WhatAnInterruptedRunCameToIsReplacedByTheNext) {
  finishOne(1);
  {
    auto interrupted = OutputFolder::claim(path(), Earlier::kReplaced);
    ASSERT_TRUE(interrupted.ok());
    ASSERT_TRUE(interrupted->render({}).ok());
  }
  EXPECT_EQ(seedThere(), 1u);
  auto next = OutputFolder::claim(path(), Earlier::kReplaced);
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_FALSE(fs::exists(next->path() + "/result.json"));
}

TEST_F(OutputFolderTest, WhatAKilledExperimentLeftIsRemoved) {
  {
    auto killed = OutputFolder::claim(path());
    ASSERT_TRUE(killed.ok());
    for (const char* name : {"command-armed-0", "checkpoints-0"}) {
      ASSERT_TRUE(killed->makeFolder(name).ok());
      write(std::string(name) + "/rank0", "state");
    }
    write("log.txt", "     0.013 s  [1/4] block 1, fault_free ...\n");
  }
  const auto folder = OutputFolder::claim(path());
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_FALSE(fs::exists(in("command-armed-0")));
  EXPECT_FALSE(fs::exists(in("checkpoints-0")));
  EXPECT_EQ(fs::file_size(folder->logPath()), 0u);
}

TEST_F(OutputFolderTest, WhatIsNotOfAnExperimentIsLeftAlone) {
  for (const Earlier earlier : {Earlier::kRefused, Earlier::kReplaced}) {
    std::vector<std::string> names{"log.txt"};
    for (const auto& renderer : reports::allRenderers()) names.push_back(renderer->fileName());
    for (const std::string& name : names) {
      write(name, "mine");
      EXPECT_THAT(whyNot(earlier), HasSubstr("is not of a run of faultline")) << name;
      EXPECT_EQ(*readFile(in(name)), "mine");
      fs::remove(in(name));
    }
    fs::create_directory(in("command-x-0"));
    EXPECT_THAT(whyNot(earlier, {"command-x-0"}), HasSubstr("command-x-0 is not of a run"));
    fs::remove(in("command-x-0"));
  }
  fs::create_directory(in("command-line-tools"));
  EXPECT_EQ(whyNot(), "") << "no run makes a folder of this name";
  EXPECT_TRUE(fs::exists(in("command-line-tools")));
}

TEST_F(OutputFolderTest, LinksAreNeitherFollowedNorRemoved) {
  const std::string victim = folder_.write("victim", "mine");
  const std::string folder = folder_.path() / "folder";
  fs::create_directory(folder);
  for (const bool earlier : {false, true}) {
    if (earlier) finishOne(1);
    for (const char* name : {"log.txt", "trace.json", "report.html", "unfinished", "command-x-0"}) {
      fs::remove(in(name));
      const bool ofFolder = std::string(name).find('.') == std::string::npos;
      fs::create_symlink(ofFolder ? folder : victim, in(name));
      EXPECT_THAT(whyNot(Earlier::kReplaced, {"command-x-0"}), HasSubstr("is a symbolic link"))
          << name;
      EXPECT_TRUE(fs::is_symlink(in(name)));
      fs::remove(in(name));
    }
  }
  EXPECT_EQ(*readFile(victim), "mine");
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(OutputFolderTest, AHardLinkOfALogKeepsItsText) {
  const std::string log = "     0.013 s  [1/4] block 1, fault_free ...\n";
  const std::string kept = folder_.write("kept", log);
  ASSERT_TRUE(OutputFolder::claim(path()).ok());
  fs::remove(in("log.txt"));
  fs::create_hard_link(kept, in("log.txt"));
  ASSERT_TRUE(OutputFolder::claim(path()).ok());
  EXPECT_EQ(*readFile(kept), log);
}

TEST_F(OutputFolderTest, ALinkToAFolderIsRefused) {
  const std::string link = folder_.path() / "link";
  fs::create_symlink(path(), link);
  for (const std::string& name : {link, link + "/"}) {
    const auto folder = OutputFolder::claim(name);
    ASSERT_FALSE(folder.ok());
    EXPECT_THAT(folder.status().message(), HasSubstr("is a symbolic link"));
    EXPECT_FALSE(OutputFolder::check(name, Earlier::kRefused).ok());
  }
}

TEST_F(OutputFolderTest, AFolderThatIsNotThereCanBeMadeAndNotClaimed) {
  EXPECT_TRUE(OutputFolder::check(path() + "/missing", Earlier::kRefused).ok());
  const auto folder = OutputFolder::claim(path() + "/missing");
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.status().message(), HasSubstr("open the output directory"));
}

}  // namespace
}  // namespace faultline::run

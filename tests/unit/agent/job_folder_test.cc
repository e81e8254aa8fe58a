#include "harness/agent/job_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "harness/agent/shared_folder.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"

// Folders of a run on a host: there as long as it is, whatever dies.

namespace faultline::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kPatience = 20s;

class JobFolderTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "faultline-run-1") const {
    return (folder_.path() / name).string();
  }
  /// In it, a file and a link to what must stay.
  void fill(const std::string& folder) const {
    fs::create_directories(folder + "/a/b");
    std::ofstream(folder + "/a/b/c") << "text";
    fs::create_directory_symlink(stays_.path(), folder + "/link");
  }
  /// A process that has such a folder, and waits; it dies by SIGKILL.
  pid_t holdAndDie(bool watched) const {
    const pid_t child = ::fork();
    if (child == 0) {
      auto made = JobFolder::make(path());
      if (!made.ok()) ::_exit(1);
      fill(path());
      if (watched && !made->outliveUs(-1).ok()) ::_exit(2);
      std::ofstream(folder_.path() / "ready") << "";
      for (;;) ::pause();
    }
    EXPECT_TRUE(test::pollUntil(kPatience, [&] { return fs::exists(folder_.path() / "ready"); }));
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    return child;
  }

  testing::TemporaryFolder folder_;
  testing::TemporaryFolder stays_;
};

TEST_F(JobFolderTest, IsForItsOwnerAndGoesWithTheObject) {
  const std::string kept = stays_.write("kept", "");
  {
    auto made = JobFolder::make(path());
    ASSERT_TRUE(made.ok()) << made.status().message();
    struct stat known = {};
    ASSERT_EQ(::stat(path().c_str(), &known), 0);
    EXPECT_EQ(known.st_mode & 0777U, 0700U);
    fill(path());
    EXPECT_FALSE(JobFolder::make(path()).ok()) << "something is there";
    EXPECT_TRUE(fs::exists(path() + "/a/b/c"));
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  EXPECT_TRUE(fs::exists(kept)) << "a link is not followed";
}

TEST_F(JobFolderTest, GoesAlsoByTheProcessThatWatchesIt) {
  auto made = JobFolder::make(path());
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(made->outliveUs(-1).ok());
  fill(path());
  EXPECT_TRUE(made->remove().ok());
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(JobFolderTest, GoesWhenItsProcessIsKilled) {
  holdAndDie(/*watched=*/true);
  EXPECT_TRUE(test::pollUntil(kPatience, [&] { return !fs::exists(path()); }));
}

TEST_F(JobFolderTest, OnlyAfterWhoUsesItHasEnded) {
  launch::SpawnOptions options;
  options.executable = "/bin/sleep";
  options.arguments = {"sleep", "600"};
  auto user = launch::Process::spawn(options);
  ASSERT_TRUE(user.ok()) << user.status().message();
  const pid_t child = ::fork();
  if (child == 0) {
    auto made = JobFolder::make(path());
    ::_exit(made.ok() && made->outliveUs(user->pidFd()).ok() ? 0 : 1);  // without its destructor
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  constexpr Duration kALittle = 200ms;
  EXPECT_FALSE(test::pollUntil(kALittle, [&] { return !fs::exists(path()); }));
  ASSERT_TRUE(user->signal(SIGKILL).ok());
  EXPECT_TRUE(test::pollUntil(kPatience, [&] { return !fs::exists(path()); }));
}

TEST_F(JobFolderTest, WhatARunLeftIsSweptAndWhatIsInUseIsNot) {
  holdAndDie(/*watched=*/false);
  EXPECT_TRUE(fs::exists(path()));
  const auto used = JobFolder::make(path("faultline-run-2"));
  ASSERT_TRUE(used.ok());
  fs::create_directory(path("faultline-other"));
  fs::create_directory_symlink(stays_.path(), path("faultline-run-link"));
  const std::string kept = stays_.write("kept", "");
  EXPECT_THAT(JobFolder::sweep(path("faultline-run-3")),
              ElementsAre(HasSubstr("removed " + path() + ", which an earlier run had left")));
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_TRUE(fs::exists(path("faultline-run-2")));
  EXPECT_TRUE(fs::exists(path("faultline-other")));
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_THAT(JobFolder::sweep(path("faultline-run-3")), IsEmpty());
}

// Machines that share a folder may each see their own locks only.
TEST_F(JobFolderTest, WhatAnotherMachineHasMadeIsItsOwn) {
  holdAndDie(/*watched=*/false);
  const std::string mark = path() + "/.made-on";
  std::ifstream made(mark);
  std::string boot;
  std::string name;
  ASSERT_TRUE(made >> boot >> name);
  std::ofstream(mark) << "another another\n";
  EXPECT_THAT(JobFolder::sweep(path("faultline-run-3")), IsEmpty());
  EXPECT_TRUE(fs::exists(path() + "/a/b/c"));
  std::ofstream(mark) << "another " << name << "\n";
  EXPECT_THAT(JobFolder::sweep(path("faultline-run-3")), ElementsAre(HasSubstr("removed")))
      << "it has started anew since then";
}

TEST_F(JobFolderTest, AProcessSweepsAndSaysWhatItDid) {
  holdAndDie(/*watched=*/false);
  auto sweeper = JobFolder::startSweeper(path("faultline-run-3"));
  ASSERT_TRUE(sweeper.ok()) << sweeper.status().message();
  const auto said = sweeper->messages().receiveWithin(kPatience);
  ASSERT_TRUE(said.ok()) << said.status().message();
  EXPECT_THAT(said->get<std::string>(), HasSubstr("removed " + path()));
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(JobFolderTest, ItsRemovalIsNotWaitedFor) {
  auto made = JobFolder::make(path());
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(made->outliveUs(-1).ok());
  fill(path());
  made->beginRemove();
  EXPECT_TRUE(JobFolder::make(path()).ok()) << "the next job has another one of this name";
  std::optional<Status> removed;
  EXPECT_TRUE(test::pollUntil(kPatience, [&] { return (removed = made->removed()).has_value(); }));
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->ok()) << removed->message();
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(JobFolderTest, ItsRemovalGoesOnWhenNobodyIsThereAnyMore) {
  const fs::path parent = fs::path(path()).parent_path();
  const auto left = [&] { return std::distance(fs::directory_iterator(parent), {}); };
  const auto before = left();
  {
    auto made = JobFolder::make(path());
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_TRUE(made->outliveUs(-1).ok());
    fill(path());
    made->beginRemove();
    EXPECT_GT(left(), before);
  }
  EXPECT_TRUE(test::pollUntil(kPatience, [&] { return left() == before; }));
}

TEST_F(JobFolderTest, ASharedOneIsSeenWithItsTokenAlone) {
  const auto made = makeSharedFolder(path("shared"), "token");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(seeSharedFolder(path("shared"), "token").ok());
  EXPECT_EQ(seeSharedFolder(path("shared"), "another").code(), Code::kNotFound);
  EXPECT_EQ(seeSharedFolder(path("nowhere"), "token").code(), Code::kNotFound);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("shared")), fs::directory_iterator()), 1)
      << "who looked has left nothing";
}

}  // namespace
}  // namespace faultline::agent

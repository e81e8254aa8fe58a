#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <filesystem>
#include <string>

#include "base/input_file.h"
#include "base/unique_fd.h"
#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }

  const testing::TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "result.json").string();
};

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFileAndSaysWhy) {
  ASSERT_TRUE(writeFileAtomically(path_, "old").ok());
  // A limit on file sizes fails in the middle of writing, as a full disk does.
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = writeFileAtomically(path_, std::string(100'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr(path_));
  EXPECT_THAT(status.message(), HasSubstr("File too large"));
  EXPECT_EQ(*readFile(path_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AMissingDirectoryIsAnError) {
  EXPECT_EQ(writeFileAtomically("/nonexistent/directory/file", "x").code(), Code::kNotFound);
}

TEST_F(AtomicFileTest, ItsRightsAreThoseOfAnyFileOfItsUser) {
  const mode_t mask = ::umask(027);
  const Status status = writeFileAtomically(path_, "x");
  ::umask(mask);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fs::status(path_).permissions(), static_cast<fs::perms>(0640));
}

// One that was killed while it wrote, with the number that this process has now.
TEST_F(AtomicFileTest, WhatAnotherProcessLeftIsNotTouched) {
  const std::string left = path_ + "." + std::to_string(::getpid()) + "-0";
  ASSERT_TRUE(writeFileAtomically(left, "part").ok());
  ASSERT_TRUE(writeFileAtomically(path_, "whole").ok());
  EXPECT_EQ(*readFile(path_), "whole");
  EXPECT_EQ(*readFile(left), "part");
  EXPECT_EQ(files(), 2);
}

// A process that is killed in the middle of writing leaves nothing, or what the next one sweeps.
TEST_F(AtomicFileTest, WhatKilledWritersLeftIsSweptAndNothingElse) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string dead = std::to_string(gone), alive = std::to_string(::getpid());
  for (const std::string& ending :
       {"." + dead + "-0", "." + dead + "-17", "." + alive + "-0", "." + dead, "." + dead + "-",
        "." + dead + "-1x", std::string(".old-1"), std::string("x." + dead + "-0")}) {
    ASSERT_TRUE(writeFileAtomically(path_ + ending, "part").ok());
  }
  fs::create_directory(path_ + "." + dead + "-2");
  fs::create_symlink("/dev/null", path_ + "." + dead + "-3");
  const std::ptrdiff_t before = files();
  EXPECT_EQ(sweepTemporaries(path_, {}), 0) << "somebody's, as no writer of ours had this number";
  EXPECT_EQ(sweepTemporaries(path_, {gone, ::getpid()}), 2);
  EXPECT_EQ(files(), before - 2);
  EXPECT_FALSE(fs::exists(path_ + "." + dead + "-0"));
  EXPECT_FALSE(fs::exists(path_ + "." + dead + "-17"));
}

TEST_F(AtomicFileTest, AWriterThatIsKilledLeavesNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) {
      (void)writeFileAtomically(path_, std::string(8 << 20, 'x'));
      (void)!::write(writer.get(), "w", 1);
    }
  }
  char written = 0;
  ASSERT_EQ(::read(reader.get(), &written, 1), 1);  // it is in the next one now
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const int swept = sweepTemporaries(path_, {child});
  EXPECT_LE(swept, 1) << "killed between the two names of a file that is whole";
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, WhatIsNoFileStaysWhatItIs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  fs::create_symlink("/proc/self/fd/" + std::to_string(writer.get()), path_);
  ASSERT_TRUE(writeFileAtomically(path_, "words").ok());
  std::array<char, 16> got{};
  EXPECT_EQ(::read(reader.get(), got.data(), got.size()), 5);
  EXPECT_STREQ(got.data(), "words");
  EXPECT_TRUE(fs::is_symlink(path_));
  const Status full = writeFileAtomically("/dev/full", "words");
  EXPECT_EQ(full.code(), Code::kIo) << full.message();
  EXPECT_THAT(full.message(), HasSubstr("No space left on device"));
}

// As /dev/stdout of a program whose output goes into a file.
TEST_F(AtomicFileTest, AFileThatAProgramHasOpenIsAppendedTo) {
  const UniqueFd log(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(log.get(), "log ", 4), 4);
  const std::string open = "/proc/self/fd/" + std::to_string(log.get());
  ASSERT_TRUE(writeFileAtomically(open, "words ").ok());
  ASSERT_EQ(::write(log.get(), "more", 4), 4);
  EXPECT_EQ(*readFile(path_), "log words more");
  EXPECT_TRUE(isStream(open));
  EXPECT_TRUE(isStream("/dev/stdout"));
  EXPECT_FALSE(isStream("/dev/shm/new.json"));
  EXPECT_FALSE(isStream(path_));
  EXPECT_EQ(writeFileAtomically("/dev/fd/999999", "words").code(), Code::kIo);
}

TEST_F(AtomicFileTest, ASymbolicLinkMeansItsFile) {
  const std::string file = path_ + ".real";
  ASSERT_TRUE(writeFileAtomically(file, "old").ok());
  fs::create_symlink(file, path_);
  struct stat before = {}, after = {};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  ASSERT_TRUE(writeFileAtomically(path_, "new", Sync::kNo).ok());
  ASSERT_EQ(::stat(file.c_str(), &after), 0);
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(*readFile(file), "new");
  EXPECT_NE(before.st_ino, after.st_ino) << "in place";
  EXPECT_EQ(files(), 2);
}

TEST_F(AtomicFileTest, APipeThatNobodyReadsIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(writeFileAtomically(path_, "words").message(), HasSubstr("No such device"));
}

TEST_F(AtomicFileTest, ALinkToWhatIsNotThereYetMeansThat) {
  const std::string file = path_ + ".real";
  fs::create_symlink("result.json.real", path_);
  ASSERT_TRUE(checkFile(path_).ok());
  EXPECT_TRUE(fs::is_symlink(path_)) << "looking takes nothing away";
  EXPECT_FALSE(fs::exists(file)) << "looking makes nothing";
  ASSERT_TRUE(writeFileAtomically(path_, "new").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(*readFile(file), "new");
}

// With room for no other name beside it.
TEST_F(AtomicFileTest, WhatCannotBeReplacedIsWrittenInPlace) {
  const std::string file = (folder_.path() / std::string(NAME_MAX, 'n')).string();
  ASSERT_TRUE(writeFileAtomically(file, "old and long").ok());
  ASSERT_TRUE(writeFileAtomically(file, "new").ok());
  EXPECT_EQ(*readFile(file), "new");
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace faultline

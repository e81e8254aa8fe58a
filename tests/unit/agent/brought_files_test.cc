#include "harness/agent/brought_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "tests/support/run_program.h"

// What the files of programs on another machine have comes in parts: nothing twice, nothing left
// out.

namespace faultline::agent {
namespace {

using wire::Bringing;

class BroughtFilesTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary | std::ios::app) << text;
  }
  BroughtFiles follow() const {
    return BroughtFiles({{path("growing"), Bringing::kGrowing},
                         {path("lines"), Bringing::kLines},
                         {path("last"), Bringing::kAtEnd}});
  }
  Status look(BroughtFiles& files) {
    return files.look([this](int file, std::string_view bytes) { return got(file, bytes); });
  }
  Status lookAtAll(BroughtFiles& files, bool over = false) {
    files.beginAll(over);
    for (;;) {
      ASSIGN_OR_RETURN(const bool all, files.bringSome([this](int file, std::string_view bytes) {
        return got(file, bytes);
      }));
      if (all) return okStatus();
    }
  }
  Status got(int file, std::string_view bytes) {
    brought_[file] += bytes;
    constexpr int kFarTooMany = 1000;
    if (meanwhile_ && ++times_ < kFarTooMany) meanwhile_();
    return refuses_ ? errorf(Code::kUnavailable, "nobody listens") : okStatus();
  }

  testing::TemporaryFolder folder_;
  std::map<int, std::string> brought_;  // by file; of what is there
  bool refuses_ = false;
  std::function<void()> meanwhile_;  ///< what the program does whenever something has come
  int times_ = 0;
};

TEST_F(BroughtFilesTest, OfOneThatGrowsWhatIsNew) {
  BroughtFiles files = follow();
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_TRUE(brought_.empty()) << "nothing is there";
  append("growing", "");
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_TRUE(brought_.contains(0)) << "it is there, with nothing in it";
  const std::string text(100'000, 'x');
  append("growing", text);
  ASSERT_TRUE(lookAtAll(files).ok());
  append("growing", std::string("\0\xff\n", 3));
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_EQ(brought_.at(0), text + std::string("\0\xff\n", 3));
}

TEST_F(BroughtFilesTest, OfOneThatGrowsFastAPartAtATime) {
  BroughtFiles files = follow();
  append("growing", std::string(1 << 20, 'x'));
  ASSERT_TRUE(look(files).ok());
  EXPECT_GT(brought_.at(0).size(), 0U);
  EXPECT_LT(brought_.at(0).size(), std::size_t{1} << 20) << "others have their turn";
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_EQ(brought_.at(0).size(), std::size_t{1} << 20);
}

TEST_F(BroughtFilesTest, LinesComeOnceHoweverTheyAreWritten) {
  BroughtFiles files = follow();
  append("lines", "0\n1\n2");
  ASSERT_TRUE(look(files).ok());
  EXPECT_EQ(brought_.at(1), "0\n1\n") << "a line counts when it is ended";
  append("lines", "\n");
  ASSERT_TRUE(look(files).ok());
  folder_.write("lines", "7\n");  // anew
  ASSERT_TRUE(look(files).ok());
  ASSERT_TRUE(look(files).ok());
  EXPECT_EQ(brought_.at(1), "0\n1\n2\n7\n");
  folder_.write("lines", "8\n");
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_EQ(brought_.at(1), "0\n1\n2\n7\n8\n") << "seen to be another one, and read, at once";
}

TEST_F(BroughtFilesTest, ManyLinesComeInAllWhenTheyMust) {
  BroughtFiles files = follow();
  std::string text;
  for (int line = 0; line < 5000; ++line) text += std::to_string(line) + "\n";
  append("lines", text);
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_EQ(brought_.at(1), text);
}

// Who asks for all of it must not be kept by one who writes without a pause.
TEST_F(BroughtFilesTest, AllIsWhatStoodThereWhenItWasAskedFor) {
  for (const std::string name : {"lines", "growing"}) {
    BroughtFiles files = follow();
    brought_.clear();
    times_ = 0;
    const std::string text(100 * 1024, '\n');
    append(name, text);
    meanwhile_ = [&] { append(name, text); };
    ASSERT_TRUE(lookAtAll(files).ok());
    const std::string& came = brought_.at(name == "lines" ? 1 : 0);
    EXPECT_GE(came.size(), text.size()) << name;
    EXPECT_LT(came.size(), 2 * text.size()) << name;
  }
}

TEST_F(BroughtFilesTest, NorByOneThatWritesItAnewWithoutAPause) {
  BroughtFiles files = follow();
  folder_.write("lines", "0\n");
  meanwhile_ = [&] { folder_.write("lines", std::to_string(times_) + "\n"); };
  ASSERT_TRUE(lookAtAll(files).ok());
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_LT(times_, 10);
}

TEST_F(BroughtFilesTest, LinesWithoutEndAreCutAndThatIsToldOnce) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  const std::string line(63, 'x');
  std::string text;
  for (std::size_t size = 0; size < kMost * 3 / 2; size += line.size() + 1) text += line + "\n";
  append("lines", text);
  BroughtFiles files = follow();
  EXPECT_TRUE(files.takeCut().empty());
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_GE(brought_.at(1).size(), kMost);
  EXPECT_LT(brought_.at(1).size(), text.size());
  EXPECT_THAT(files.takeCut(), ::testing::ElementsAre(path("lines")));
  EXPECT_TRUE(files.takeCut().empty());
}

TEST_F(BroughtFilesTest, OneThatIsAskedForAtTheEndComesThen) {
  BroughtFiles files = follow();
  append("last", "draft, longer than");
  ASSERT_TRUE(lookAtAll(files).ok());
  EXPECT_FALSE(brought_.contains(2));
  folder_.write("last", "all");
  ASSERT_TRUE(lookAtAll(files, /*over=*/true).ok());
  EXPECT_EQ(brought_.at(2), "all");
}

TEST_F(BroughtFilesTest, WhatIsNoFileIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("growing").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(path("lines").c_str(), 0700), 0);
  BroughtFiles files = follow();
  ASSERT_TRUE(lookAtAll(files, /*over=*/true).ok());
  EXPECT_TRUE(brought_.empty());
}

TEST_F(BroughtFilesTest, AControllerThatIsGoneIsAnError) {
  BroughtFiles files = follow();
  append("growing", "x");
  refuses_ = true;
  EXPECT_EQ(lookAtAll(files).code(), Code::kUnavailable);
}

TEST_F(BroughtFilesTest, LinesAreLookedForOftenerThanWhatIsPrinted) {
  BroughtFiles both = follow();
  BroughtFiles printed({{path("growing"), Bringing::kGrowing}});
  ASSERT_TRUE(look(both).ok());
  ASSERT_TRUE(look(printed).ok());
  EXPECT_LT(both.due(), printed.due());
  EXPECT_EQ(BroughtFiles({}).due(), TimePoint::max());
}

}  // namespace
}  // namespace faultline::agent

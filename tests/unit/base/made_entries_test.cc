#include "base/made_entries.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/input_file.h"
#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MadeEntriesTest : public ::testing::Test {
 protected:
  Result<MadeEntries> read() const {
    const UniqueFd folder(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return MadeEntries::read(folder.get(), folder_.path());
  }
  void write(const std::string& text) const { folder_.write(MadeEntries::kFile, text); }
  std::string text() const { return *readFile(folder_.path() / MadeEntries::kFile); }

  const testing::TemporaryFolder folder_;
};

TEST_F(MadeEntriesTest, AFolderWithoutARecordHasNothingOfOurs) {
  auto entries = read();
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  EXPECT_FALSE(entries->there());
  EXPECT_THAT(entries->made(), IsEmpty());
  EXPECT_FALSE(entries->mayReplace("log.txt"));
}

TEST_F(MadeEntriesTest, WhatIsNamedIsReadAgain) {
  {
    auto entries = read();
    ASSERT_TRUE(entries->begin({"old.csv", "both.md"}).ok());
    for (const char* name : {"log.txt", "gone", "both.md"}) ASSERT_TRUE(entries->add(name).ok());
    ASSERT_TRUE(entries->drop("gone").ok());
    ASSERT_TRUE(entries->finish().ok());
  }
  auto entries = read();
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  EXPECT_THAT(entries->made(), ElementsAre("both.md", "log.txt"));
  EXPECT_TRUE(entries->mayReplace("old.csv"));
  EXPECT_FALSE(entries->isMade("old.csv"));
  EXPECT_FALSE(entries->mayReplace("gone"));
  EXPECT_TRUE(entries->finished());
  ASSERT_TRUE(entries->begin().ok());
  EXPECT_FALSE(read()->finished()) << "it is being written again";
}

TEST_F(MadeEntriesTest, ALineThatWasNotWrittenToItsEndNamesNothing) {
  ASSERT_TRUE(read()->begin().ok());
  write(text() + "+ checkpoints-1");
  EXPECT_THAT(read()->made(), IsEmpty());
  auto entries = read();
  ASSERT_TRUE(entries->begin().ok());
  ASSERT_TRUE(entries->add("2").ok());
  EXPECT_THAT(read()->made(), ElementsAre("2"));
}

TEST_F(MadeEntriesTest, NoNameLeadsOutOfTheFolder) {
  ASSERT_TRUE(read()->begin().ok());
  write(text() + "+ ../x\n+ ..\n+ .\n+ /etc\n+ \n+\n+ .faultline-made\n+ x\n");
  EXPECT_THAT(read()->made(), ElementsAre("x"));
  auto entries = read();
  ASSERT_TRUE(entries->begin().ok());
  EXPECT_FALSE(entries->add("a/b").ok());
  EXPECT_FALSE(entries->add("a\n+ b").ok());
}

TEST_F(MadeEntriesTest, WhatIsNoRecordIsRefused) {
  for (const char* text : {"", "mine\n", "faultline.made/12: later\n"}) {
    write(text);
    const auto entries = read();
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_EQ(entries.status().code(), Code::kAlreadyExists);
    EXPECT_THAT(entries.status().message(), HasSubstr(MadeEntries::kFile));
  }
  const std::string place = folder_.path() / MadeEntries::kFile;
  const std::string real = folder_.write("real", "faultline.made/1: x\n+ victim\n");
  std::filesystem::remove(place);
  std::filesystem::create_symlink(real, place);
  EXPECT_FALSE(read().ok());
}

}  // namespace
}  // namespace faultline

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/run_program.h"

// ci/check_format.sh, on this checkout and on a small one with a mistake.

namespace faultline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;
using testing::runProgram;
using testing::TemporaryFolder;

const std::string kSources = FAULTLINE_SOURCE_DIR;
constexpr int kSkipped = 77;

Ran check(const std::string& folder) {
  return runProgram("/usr/bin/env", {"bash", kSources + "/ci/check_format.sh", folder});
}

TEST(FormatTest, AllSourcesHaveTheFormatOfTheProject) {
  const Ran ran = check(kSources);
  if (ran.exit == kSkipped) GTEST_SKIP() << ran.out;
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
}

TEST(FormatTest, AFileOfAnotherFormatIsNamedWithTheCommandThatMendsIt) {
  const TemporaryFolder folder;
  fs::copy_file(kSources + "/.clang-format", folder.path() / ".clang-format");
  fs::create_directory(folder.path() / "room");
  folder.write("room/good.cc", "int good() { return 1; }\n");
  folder.write("room/bad.cc", "int bad( ) {return 1;}\n");
  const Ran ran = check(folder.path());
  if (ran.exit == kSkipped) GTEST_SKIP() << ran.out;
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("1 of 2 files"));
  EXPECT_THAT(ran.out, HasSubstr("\n  room/bad.cc\n"));
  EXPECT_THAT(ran.out, HasSubstr("mend them with: clang-format-14 -i room/bad.cc\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("good.cc")));
}

}  // namespace
}  // namespace faultline

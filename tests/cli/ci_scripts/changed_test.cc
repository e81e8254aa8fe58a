#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/run_program.h"

// ci/changed.py: which files clang-tidy and the check of headers look at.

namespace faultline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Ran;
using testing::runProgram;
using ::testing::StartsWith;
using testing::TemporaryFolder;

/// A repository with the branch main and three files, on a branch of its own.
class ChangedTest : public ::testing::Test {
 protected:
  ChangedTest() {
    fs::create_directory(folder_.path() / "ci");
    fs::copy_file(FAULTLINE_SOURCE_DIR "/ci/changed.py", folder_.path() / "ci/changed.py");
    folder_.write(".gitignore", "ci/__pycache__\nmade.cc\n");
    for (const char* file : {"kept.cc", "edited.cc", "removed.cc"}) folder_.write(file, "int x;\n");
    sh("git init -q -b main . && git add -A && " + kCommit);
  }

  Ran sh(const std::string& command) {
    Ran ran = runProgram("/bin/sh", {"-c", command}, folder_.path());
    EXPECT_EQ(ran.exit, 0) << command << ": " << ran.err;
    return ran;
  }
  std::string changed(const std::string& base = "") {
    return sh("FAULTLINE_BASE=" + base +
              " python3 -c 'import sys; sys.path.insert(0, \"ci\"); import changed\n"
              "print(*changed.files())'")
        .out;
  }

  const std::string kCommit =
      "git -c user.name=n -c user.email=e -c commit.gpgsign=false commit -q -m m";
  TemporaryFolder folder_;
};

TEST_F(ChangedTest, OnABranchItIsWhatDiffersFromWhereItBegan) {
  sh("git checkout -q -b mine && git rm -q removed.cc && echo 'int y;' > edited.cc && " + kCommit +
     " -a && echo 'int z;' > new.cc && echo > made.cc");
  EXPECT_THAT(changed(), StartsWith("['edited.cc', 'new.cc'] "));
  EXPECT_THAT(changed(), HasSubstr("(where this branch left main)"));
}

TEST_F(ChangedTest, OnMainItIsWhatTheLastCommitChanged) {
  sh("echo 'int y;' > edited.cc && " + kCommit + " -a");
  EXPECT_THAT(changed(), StartsWith("['edited.cc'] "));
  EXPECT_THAT(changed(), HasSubstr("(the commit before)"));
}

TEST_F(ChangedTest, ACommitMayBeNamed) {
  sh("echo 'int y;' > edited.cc && " + kCommit + " -a && git tag then && echo > kept.cc && " +
     kCommit + " -a");
  EXPECT_THAT(changed("then"), StartsWith("['kept.cc'] "));
}

TEST_F(ChangedTest, WithoutACommitBeforeThereIsNothingToCompareWith) {
  EXPECT_THAT(changed(), StartsWith("None there is no commit to compare with"));
}

}  // namespace
}  // namespace faultline

// The script of the nightly scenarios (ci/nightly/scenarios.sh), with programs that only pretend to
// build and to run: nothing is compiled, and no scenario runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Ran;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

constexpr const char* kCmake = "#!/bin/sh\n: >began\n";

/// Knows `run FILE --out DIR`, `report`, `history add`, and `history trend`, which says what the
/// file says.txt has, and where its page is.
constexpr const char* kFaultline = R"sh(#!/bin/sh
case "$1 $2" in
  "run "*) mkdir -p "$4" && : >"$4/result.json" ;;
  "history add") exit "$(cat add.txt)" ;;
  "history trend") cat says.txt; echo "report: out/trend.html"; exit "$(cat trend.txt)" ;;
esac
)sh";

/// A checkout with the script, one scenario, and these programs.
class NightlyScenariosTest : public ::testing::Test {
 protected:
  NightlyScenariosTest() {
    for (const char* name : {"ci/nightly", "scenarios/nightly", "build", "bin"}) {
      fs::create_directories(folder_.path() / name);
    }
    for (const char* name : {"ci/common.sh", "ci/nightly/scenarios.sh"}) {
      fs::copy_file(fs::path(FAULTLINE_SOURCE_DIR) / name, folder_.path() / name);
    }
    folder_.write("scenarios/nightly/one.yaml", "");
    fs::permissions(folder_.write("bin/cmake", kCmake), fs::perms::owner_all);
    fs::permissions(folder_.write("build/faultline", kFaultline), fs::perms::owner_all);
  }

  Ran night(const std::string& database) {
    return testing::runProgram(
        "/usr/bin/env",
        {"PATH=" + (folder_.path() / "bin").string() + ":/usr/local/bin:/usr/bin:/bin",
         "NIGHTLY_OUT=out", "NIGHTLY_DB=" + database, "bash",
         (folder_.path() / "ci/nightly/scenarios.sh").string()});
  }
  /// A night whose trend ends so.
  Ran nightOf(int trend, const std::string& says, int add = 0) {
    folder_.write("trend.txt", std::to_string(trend));
    folder_.write("add.txt", std::to_string(add));
    folder_.write("says.txt", says);
    return night("kept/here/results.db");
  }
  bool began() const { return fs::exists(folder_.path() / "began"); }

  TemporaryFolder folder_;
};

TEST_F(NightlyScenariosTest, EndWithWhatTheTrendSays) {
  const Ran good = nightOf(0, "BASE: x\n\n0 regressions beyond 2 %, 3 not distinguishable\n");
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("BASE: x\n"));
  EXPECT_THAT(good.out, EndsWith("\n1 scenarios good, 0 not; trend: 0 regressions beyond 2 %, 3 "
                                 "not distinguishable\n"));
  EXPECT_TRUE(began());
  EXPECT_TRUE(fs::is_directory(folder_.path() / "kept/here")) << "the history has a place";
  const Ran worse = nightOf(1, "1 regression beyond 2 %\n");
  EXPECT_EQ(worse.exit, 1);
  EXPECT_THAT(worse.out, EndsWith("trend: 1 regression beyond 2 %\n"));
  // Nothing is known to be worse, and it is not said that nights are too few.
  const Ran unproven = nightOf(5, "2 void, 1 passed and is invalid now (one)\n");
  EXPECT_EQ(unproven.exit, 0);
  EXPECT_THAT(unproven.out, EndsWith("trend: 2 void, 1 passed and is invalid now (one)\n"));
}

TEST_F(NightlyScenariosTest, AHistoryThatCannotBeKeptOrReadIsNoGoodNight) {
  const Ran unread = nightOf(2, "");
  EXPECT_EQ(unread.exit, 1);
  EXPECT_THAT(unread.out, EndsWith("1 scenarios good, 0 not; trend: failed, exit 2\n"));
  const Ran unkept = nightOf(0, "0 regressions\n", 3);
  EXPECT_EQ(unkept.exit, 1);
  EXPECT_THAT(unkept.out, EndsWith("trend: failed, exit 3\n"));
}

TEST_F(NightlyScenariosTest, NothingBeginsWhereTheHistoryCannotBeWritten) {
  const std::string file = folder_.write("file", "");  // root may write into any folder, not this
  const std::string directory = (folder_.path() / "bin").string();
  for (const std::string& database : {file + "/results.db", directory}) {
    const Ran ran = night(database);
    EXPECT_EQ(ran.exit, 2) << database;
    EXPECT_THAT(ran.err, HasSubstr("cannot keep the history in " + database));
    EXPECT_THAT(ran.err, HasSubstr("set NIGHTLY_DB"));
    EXPECT_EQ(ran.out, "");
    EXPECT_FALSE(began());
    EXPECT_FALSE(fs::exists(folder_.path() / "out"));
  }
}

}  // namespace
}  // namespace faultline

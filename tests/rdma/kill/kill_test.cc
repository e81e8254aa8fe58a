// Nothing of a laboratory outlives its controller, however that ends: no process, no file.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/laboratory_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/process_tree.h"
#include "tests/support/victim.h"

namespace faultline::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFaultline = FAULTLINE_BINARY_DIR "/faultline";
constexpr int kGuests = 2;
constexpr Duration kBootBudget = 180s;
constexpr Duration kGoneBudget = 10s;

class KilledLaboratory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status status = SharedLaboratory::possible(); !status.ok()) {
      std::printf("SKIPPED: %s\n", status.message().c_str());
      GTEST_SKIP() << status.message();
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans are seen to end
    std::string pattern = (fs::temp_directory_path() / "faultline-lab-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    // Whatever is written where temporary files go, or where it was started, is seen.
    ::setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::error_code ignored;
    ::unsetenv("TMPDIR");
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }

  static int guestsOf(const std::vector<ProcessId>& tree) {
    int count = 0;
    for (const ProcessId& process : tree) {
      std::string name;
      std::ifstream("/proc/" + std::to_string(process.pid) + "/comm") >> name;
      count += name.starts_with("qemu-system") ? 1 : 0;
    }
    return count;
  }
  /// Kills it with SIGKILL and looks whether all that it had started goes.
  static void killAndExpectNothing(const Victim& victim, const std::vector<ProcessId>& tree) {
    ::kill(victim.pid(), SIGKILL);
    EXPECT_TRUE(pollUntil(kGoneBudget,
                          [&] {
                            while (::waitpid(-1, nullptr, WNOHANG) > 0) {
                            }
                            return std::ranges::all_of(tree, isGone);
                          }))
        << "of " << tree.size() << " processes some are left";
  }

  std::string folder_;
};

TEST_F(KilledLaboratory, WhileItBootsLeavesNothing) {
  Victim victim({kFaultline, "lab", "--", "sleep", "1000"}, Victim::Listen::kStderr, folder_);
  std::vector<ProcessId> tree;
  ASSERT_TRUE(pollUntil(kBootBudget, [&] {
    tree = processTree(victim.pid());
    return guestsOf(tree) == kGuests;
  }));
  killAndExpectNothing(victim, tree);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(KilledLaboratory, WhileProgramsRunLeavesNothing) {
  Victim victim({kFaultline, "lab", "--limit", "10min", "--", "sleep", "1000"},
                Victim::Listen::kStderr, folder_);
  ASSERT_TRUE(victim.awaitOutput("they are up", kBootBudget));
  const std::vector<ProcessId> tree = processTree(victim.pid());
  ASSERT_EQ(guestsOf(tree), kGuests);
  killAndExpectNothing(victim, tree);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(KilledLaboratory, WhoseMachineRoomIsKilledSaysSo) {
  Victim victim({kFaultline, "lab", "--limit", "10min", "--", "sleep", "1000"},
                Victim::Listen::kStderr, folder_);
  ASSERT_TRUE(victim.awaitOutput("they are up", kBootBudget));
  const std::vector<ProcessId> tree = processTree(victim.pid());
  // The controller, the machine room, and its guests.
  ASSERT_EQ(tree.size(), 2U + kGuests);
  // A controller that is slow, and has perhaps not told the guests yet what to run.
  ::kill(victim.pid(), SIGSTOP);
  ::kill(tree[1].pid, SIGKILL);
  EXPECT_TRUE(
      pollUntil(kGoneBudget, [&] { return std::all_of(tree.begin() + 2, tree.end(), isGone); }));
  ::kill(victim.pid(), SIGCONT);
  EXPECT_TRUE(victim.awaitOutput("the machine room is gone", kGoneBudget)) << victim.printed();
  EXPECT_TRUE(pollUntil(kGoneBudget, [&] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return std::ranges::all_of(tree, isGone);
  }));
}

}  // namespace
}  // namespace faultline::test

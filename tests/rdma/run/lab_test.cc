// The verb `lab`, as people call it: what programs print comes back by host, and what they write
// into the shared folder stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "harness/site/rdma_vm/vm_plan.h"
#include "tests/support/laboratory_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"
#include "tests/support/victim.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

TEST(LabVerb, PrintsWhatEachHostPrintedAndSharesAFolder) {
  if (const Status status = SharedLaboratory::possible(); !status.ok()) {
    std::printf("SKIPPED: %s\n", status.message().c_str());
    GTEST_SKIP() << status.message();
  }
  const testing::TemporaryFolder folder;
  // Where guests have a folder of their own, and by a link.
  const testing::TemporaryFolder memory("/dev/shm");
  std::filesystem::create_directory_symlink(memory.path(), folder.path() / "shared");
  folder.write("shared/given", "for host 0");
  const testing::Ran ran = testing::runFaultline(
      {"lab", "--rails", "1", "--share", "shared", "--", "sh", "-c",
       "cd " + (folder.path() / "shared").string() +
           " && echo text of {host} && echo error of {host} >&2 && echo {host} > written-{host} && "
           "echo lost > " +
           folder.path().string() + "/written-{host} && grep 'host {host}' given"},
      folder.path());
  EXPECT_EQ(ran.exit, 1) << ran.err;
  EXPECT_EQ(ran.out,
            "# host 0: exit code 0\ntext of 0\nfor host 0\n# host 1: exit code 1\ntext of 1\n");
  EXPECT_THAT(ran.err, HasSubstr("booting 2 hosts with 1 rails, kernel "));
  EXPECT_THAT(ran.err, HasSubstr("they are up\nerror of 0\nerror of 1\n"));
  for (const char* const host : {"0", "1"}) {
    const std::string name = std::string("written-") + host;
    std::ifstream file(folder.path() / "shared" / name);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), std::string(host) + "\n");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / name)) << "all else is the guest's own";
  }
}

TEST(LabVerb, InterruptedItPrintsWhatWasPrintedUntilThen) {
  if (const Status status = SharedLaboratory::possible(); !status.ok()) {
    std::printf("SKIPPED: %s\n", status.message().c_str());
    GTEST_SKIP() << status.message();
  }
  constexpr Duration kLimit = 10min;
  const testing::TemporaryFolder folder;
  const std::string begun = folder.path() / "begun-";
  Victim victim({FAULTLINE_BINARY_DIR "/faultline", "lab", "--rails", "1", "--share",
                 folder.path().string(), "--limit", formatDuration(kLimit), "--", "sh", "-c",
                 "echo text of {host}; touch " + begun + "{host}; sleep 600"});
  ASSERT_TRUE(pollUntil(100s, [&] {
    return std::filesystem::exists(begun + "0") && std::filesystem::exists(begun + "1");
  }));
  ::kill(-victim.pid(), SIGINT);  // as the terminal does: to the whole group
  const TimePoint asked = now();
  EXPECT_TRUE(victim.awaitOutput("# host 0: killed by signal 15 (Terminated)\ntext of 0\n", 20s));
  EXPECT_TRUE(victim.awaitOutput("# host 1: killed by signal 15 (Terminated)\ntext of 1\n", 20s));
  int status = 0;
  ASSERT_EQ(::waitpid(victim.pid(), &status, 0), victim.pid());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_LT(now() - asked, kLimit / 10);
}

TEST(LabVerb, InterruptedWhileItBootsItEndsSoon) {
  if (const Status status = SharedLaboratory::possible(); !status.ok()) {
    std::printf("SKIPPED: %s\n", status.message().c_str());
    GTEST_SKIP() << status.message();
  }
  Victim victim({FAULTLINE_BINARY_DIR "/faultline", "lab", "--", "true"}, Victim::Listen::kStderr);
  ASSERT_TRUE(victim.awaitOutput("booting", 20s));
  ::kill(-victim.pid(), SIGINT);
  const TimePoint asked = now();
  int status = 0;
  ASSERT_EQ(::waitpid(victim.pid(), &status, 0), victim.pid());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_LT(now() - asked, rdma_vm::VmSpec{}.bootBudget / 5);
}

}  // namespace
}  // namespace faultline::test

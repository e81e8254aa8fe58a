// The verb `lab`, as people call it: what programs print comes back by host, and what they write
// into the shared folder stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/laboratory_fixture.h"
#include "tests/support/run_program.h"

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

}  // namespace
}  // namespace faultline::test

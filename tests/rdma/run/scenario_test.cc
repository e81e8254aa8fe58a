// The scenario of scenarios/rdma for real: a cable is pulled under ib_write_bw, and all of it is in
// the result. Only its row with the fault: each row boots guests of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/laboratory_fixture.h"
#include "tests/support/run_program.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

TEST(RdmaVmScenario, ACableIsPulledAndTheProgramSaysRetryExceeded) {
  if (const Status status = SharedLaboratory::possible(); !status.ok()) {
    std::printf("SKIPPED: %s\n", status.message().c_str());
    GTEST_SKIP() << status.message();
  }
  const testing::TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const testing::Ran ran =
      testing::runFaultline({"run", "--out", out, "--strategy", "unprotected",
                             FAULTLINE_SOURCE_DIR "/scenarios/rdma/write-bandwidth.yaml"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  std::ifstream file(out + "/result.json");
  const nlohmann::json result = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(result.is_discarded());
  ASSERT_EQ(result["runs"].size(), 1U);
  const nlohmann::json& run = result["runs"][0];
  EXPECT_EQ(run["status"], "failed");
  ASSERT_EQ(run["evidence"].size(), 1U);
  EXPECT_EQ(run["evidence"][0]["ok"], true) << run["evidence"].dump();
  EXPECT_THAT(run["evidence"][0]["observed"].get<std::string>(), HasSubstr("1: DOWN"));
  std::ifstream error(out + "/command-unprotected-0/rank1/stderr.txt");
  const std::string text{std::istreambuf_iterator<char>(error), {}};
  EXPECT_THAT(text, HasSubstr("Failed status 12"));
}

}  // namespace
}  // namespace faultline::test

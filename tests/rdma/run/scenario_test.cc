// The scenario of scenarios/rdma for real: a cable is pulled under ib_write_bw, and all of it is in
// the result. Only rows with faults: each row boots guests of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

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

TEST(RdmaVmScenario, FaultsInsideOfAGuestStrikeLeaveEvidenceAndAreTakenBack) {
  if (const Status status = SharedLaboratory::possible(); !status.ok()) {
    std::printf("SKIPPED: %s\n", status.message().c_str());
    GTEST_SKIP() << status.message();
  }
  const testing::TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const testing::Ran ran = testing::runFaultline(
      {"run", "--out", out, FAULTLINE_SOURCE_DIR "/scenarios/rdma/faults-in-guests.yaml"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  std::ifstream file(out + "/result.json");
  const nlohmann::json result = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(result.is_discarded());
  ASSERT_EQ(result["runs"].size(), 1U);
  const nlohmann::json& run = result["runs"][0];
  EXPECT_EQ(run["status"], "failed") << run["message"];
  constexpr std::array kObserved{
      std::pair{"rdma_throttle", "Mbit/s left the queue"},
      std::pair{"rdma_silent_drop", "port rxe1/1 is ACTIVE and rail1 has kept its carrier"},
      std::pair{"rdma_port_down", "port rxe1/1 is DOWN"},
      std::pair{"rdma_link_delete", "the kernel does not list rxe1"},
      std::pair{"qp_error", "1 queue pairs were put in error and read back as ERR"}};
  ASSERT_EQ(run["faults"].size(), kObserved.size()) << run.dump();
  ASSERT_EQ(run["evidence"].size(), kObserved.size());
  double last = 0;
  for (std::size_t i = 0; i < kObserved.size(); ++i) {
    const nlohmann::json& fault = run["faults"][i];
    EXPECT_EQ(fault["kind"], kObserved[i].first);
    EXPECT_EQ(run["evidence"][i]["ok"], true) << run["evidence"][i].dump();
    EXPECT_THAT(run["evidence"][i]["observed"].get<std::string>(), HasSubstr(kObserved[i].second));
    // The next strikes when this one was over, by the clock outside.
    EXPECT_GE(fault["start_ms"].get<double>(), last) << fault.dump();
    ASSERT_TRUE(fault["end_ms"].is_number()) << fault.dump();
    last = fault["end_ms"].get<double>();
  }
  std::ifstream error(out + "/command-unprotected-0/rank1/stderr.txt");
  std::ifstream told(out + "/command-unprotected-0/rank1/stdout.txt");
  const std::string text = std::string{std::istreambuf_iterator<char>(error), {}} +
                           std::string{std::istreambuf_iterator<char>(told), {}};
  EXPECT_THAT(text, HasSubstr("Failed status 5"));
}

}  // namespace
}  // namespace faultline::test

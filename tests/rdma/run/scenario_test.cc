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
#include <vector>

#include "tests/support/laboratory_fixture.h"
#include "tests/support/run_program.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

class RdmaVmScenario : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status status = SharedLaboratory::possible(); !status.ok()) {
      std::printf("SKIPPED: %s\n", status.message().c_str());
      GTEST_SKIP() << status.message();
    }
  }

  /// A scenario that holds, with one run: run_.
  void run(std::vector<std::string> arguments, const std::string& scenario) {
    arguments.insert(arguments.begin(), {"run", "--force", "--out", out_});
    arguments.push_back(FAULTLINE_SOURCE_DIR "/scenarios/rdma/" + scenario);
    const testing::Ran ran = testing::runFaultline(arguments);
    EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
    std::ifstream file(out_ + "/result.json");
    const nlohmann::json result = nlohmann::json::parse(file, nullptr, false);
    ASSERT_FALSE(result.is_discarded());
    ASSERT_EQ(result["runs"].size(), 1U);
    run_ = result["runs"][0];
  }

  /// What the victim has written.
  std::string said(const std::string& file) const {
    std::ifstream written(out_ + "/command-unprotected-0/rank1/" + file);
    return {std::istreambuf_iterator<char>(written), {}};
  }

  nlohmann::json run_;

 private:
  const testing::TemporaryFolder folder_;
  const std::string out_ = folder_.path() / "out";
};

TEST_F(RdmaVmScenario, ACableIsPulledAndTheProgramSaysRetryExceeded) {
  ASSERT_NO_FATAL_FAILURE(run({"--strategy", "unprotected"}, "write-bandwidth.yaml"));
  EXPECT_EQ(run_["status"], "failed");
  ASSERT_EQ(run_["evidence"].size(), 1U);
  EXPECT_EQ(run_["evidence"][0]["ok"], true) << run_["evidence"].dump();
  EXPECT_THAT(run_["evidence"][0]["observed"].get<std::string>(), HasSubstr("1: DOWN"));
  EXPECT_THAT(said("stdout.txt"), HasSubstr("Failed status 12"));
}

TEST_F(RdmaVmScenario, FaultsInsideOfAGuestStrikeLeaveEvidenceAndAreTakenBack) {
  ASSERT_NO_FATAL_FAILURE(run({}, "faults-in-guests.yaml"));
  EXPECT_EQ(run_["status"], "failed") << run_["message"];
  constexpr std::array kObserved{
      std::pair{"rdma_throttle", "Mbit/s left the queue"},
      std::pair{"rdma_link_delete", "the kernel does not list rxe1"},
      // Of the device that was made again, and all were prepared before it was deleted.
      std::pair{"rdma_silent_drop", "port rxe1/1 is ACTIVE and rail1 has kept its carrier"},
      std::pair{"rdma_port_down", "port rxe1/1 is DOWN"},
      std::pair{"qp_error", "1 queue pairs were put in error and read back as ERR"}};
  ASSERT_EQ(run_["faults"].size(), kObserved.size()) << run_.dump();
  ASSERT_EQ(run_["evidence"].size(), kObserved.size());
  double last = 0;
  for (std::size_t i = 0; i < kObserved.size(); ++i) {
    const nlohmann::json& fault = run_["faults"][i];
    EXPECT_EQ(fault["kind"], kObserved[i].first);
    EXPECT_EQ(run_["evidence"][i]["ok"], true) << run_["evidence"][i].dump();
    EXPECT_THAT(run_["evidence"][i]["observed"].get<std::string>(), HasSubstr(kObserved[i].second));
    // The next strikes when this one was over, by the clock outside.
    EXPECT_GE(fault["start_ms"].get<double>(), last) << fault.dump();
    ASSERT_TRUE(fault["end_ms"].is_number()) << fault.dump();
    last = fault["end_ms"].get<double>();
  }
  EXPECT_EQ(run_["faults"].back()["target"]["text"], "rank 1") << run_["faults"].dump();
  EXPECT_THAT(said("stderr.txt") + said("stdout.txt"), HasSubstr("Failed status 5"));
}

}  // namespace
}  // namespace faultline::test

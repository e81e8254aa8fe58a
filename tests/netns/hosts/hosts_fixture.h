#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "reports/result_json.h"
#include "tests/support/run_program.h"

namespace faultline {

inline constexpr int kHosts = 3;
inline constexpr int kRails = 2;
inline constexpr int kEndless = 29999;  // iterations

class HostsTest : public ::testing::Test {
 protected:
  /// A training job: so many iterations of 10 ms or more, with 2 MiB each. `faults`: its section.
  std::string writeScenario(int iterations, const std::string& cluster = "",
                            const std::string& strategy = "fault_free",
                            const std::string& faults = "", const std::string& gradient = "2MiB") {
    return folder_.write("scenario.yaml",
                         fmt::format(R"(version: 1
name: hosts
{}
workload:
  kind: training
  iterations: {}
  warmup_iterations: 2
  compute: 10ms
  gradient: {{size: {}, buckets: 2}}
strategies: [{}]
{}limits: {{deadline: 5min, give_up: 5s}}
seed: 7
expect: [wrong_elements == 0]
)",
                                     cluster, iterations, gradient, strategy, faults));
  }
  std::string out() const { return folder_.path() / "result"; }

  /// A case of laboratory.sh; skips the test where there is no laboratory. `policy`: each host has
  /// a fault service with it; empty: none has.
  void inLaboratory(const std::string& what, const std::string& policy = "") {
    const std::string file = policy.empty() ? "" : folder_.write("policy.yaml", policy);
    ::setenv("FAULTLINE_LAB_POLICY", file.c_str(), 1);
    ::setenv("FAULTLINE_LAB_PROGRAM", FAULTLINE_BINARY_DIR "/faultline", 1);
    const std::string script = FAULTLINE_SOURCE_DIR "/tests/netns/hosts/laboratory.sh";
    const testing::Ran ran = testing::runProgram(FAULTLINE_SOURCE_DIR "/ci/labs/hosts.sh",
                                                 {std::to_string(kHosts), std::to_string(kRails),
                                                  script, FAULTLINE_BINARY_DIR "/faultline", what},
                                                 folder_.path());
    constexpr int kNotPossible = 77;
    if (ran.exit == kNotPossible) GTEST_SKIP() << ran.err;
    ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
    printed_ = ran.out;
  }
  reports::ScenarioResult result() const {
    auto read = reports::readResult(out());
    if (!read.ok()) throw std::runtime_error(read.status().message());
    return std::move(*read);
  }
  /// What was printed behind this name.
  std::int64_t told(const std::string& name) const {
    std::istringstream words(printed_);
    for (std::string word; words >> word;) {
      std::int64_t value = 0;
      if (word == name && words >> value) return value;
    }
    throw std::runtime_error("nothing is told of " + name + " in " + printed_);
  }

  testing::TemporaryFolder folder_;
  std::string printed_;
};

#define IN_LABORATORY(...)   \
  inLaboratory(__VA_ARGS__); \
  if (IsSkipped() || HasFatalFailure()) return

}  // namespace faultline

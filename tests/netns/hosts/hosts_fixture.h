#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reports/result_json.h"
#include "tests/support/run_program.h"

namespace faultline {

inline constexpr int kHosts = 3;
inline constexpr int kRails = 2;
inline constexpr int kEndless = 29999;  // iterations

class HostsTest : public ::testing::Test {
 protected:
  /// A training job: so many iterations of 10 ms or more, with 2 MiB each.
  std::string writeScenario(int iterations, const std::string& cluster = "") {
    return folder_.write("scenario.yaml", fmt::format(R"(version: 1
name: hosts
{}
workload:
  kind: training
  iterations: {}
  warmup_iterations: 2
  compute: 10ms
  gradient: {{size: 2MiB, buckets: 2}}
strategies: [fault_free]
limits: {{deadline: 5min, give_up: 5s}}
seed: 7
expect: [wrong_elements == 0]
)",
                                                      cluster, iterations));
  }
  std::string out() const { return folder_.path() / "result"; }

  /// A case of laboratory.sh, with ssh; skips the test where there is no laboratory. `settings`: of
  /// the laboratory, "NAME=VALUE".
  void inLaboratory(const std::string& what, int hosts = kHosts,
                    const std::vector<std::string>& settings = {}) {
    runIn("hosts.sh", caseOf(what, "ssh"), hosts, settings);
  }
  /// The same with another launcher.
  void inLaboratory(const std::string& what, const std::string& launcher) {
    if (launcher != "slurm") return runIn("hosts.sh", caseOf(what, launcher));
    std::vector<std::string> words = caseOf(what, launcher);
    words.insert(words.begin(), {"salloc", "--quiet", "--nodes", std::to_string(kHosts)});
    runIn("slurm.sh", std::move(words));
  }
  /// A command in a laboratory of ci/labs.
  void runIn(const std::string& laboratory, std::vector<std::string> words, int hosts = kHosts,
             const std::vector<std::string>& settings = {}) {
    words.insert(words.begin(), {FAULTLINE_SOURCE_DIR "/ci/labs/" + laboratory,
                                 std::to_string(hosts), std::to_string(kRails)});
    words.insert(words.begin(), settings.begin(), settings.end());
    const testing::Ran ran = testing::runProgram("/usr/bin/env", words, folder_.path());
    constexpr int kNotPossible = 77;
    if (ran.exit == kNotPossible) GTEST_SKIP() << ran.err;
    ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
    printed_ = ran.out;
  }
  reports::ScenarioResult result() const { return result(out()); }
  static reports::ScenarioResult result(const std::string& folder) {
    auto read = reports::readResult(folder);
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

 private:
  static std::vector<std::string> caseOf(const std::string& what, const std::string& launcher) {
    return {FAULTLINE_SOURCE_DIR "/tests/netns/hosts/laboratory.sh",
            FAULTLINE_BINARY_DIR "/faultline", what, launcher};
  }
};

// Ends the test where that has failed, or could not be.
#define OR_RETURN(attempt) \
  attempt;                 \
  if (IsSkipped() || HasFatalFailure()) return
#define IN_LABORATORY(...) OR_RETURN(inLaboratory(__VA_ARGS__))

}  // namespace faultline

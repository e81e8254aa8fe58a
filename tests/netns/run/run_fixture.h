#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "reports/result_json.h"
#include "tests/support/run_program.h"

namespace faultline::run {

/// A small training job with these strategies, faults and expectations.
inline std::string scenarioText(const std::string& strategies, const std::string& faults,
                                const std::string& expect = "[wrong_elements == 0]",
                                const std::string& data = "integers") {
  return fmt::format(R"(version: 1
name: small
cluster: {{kind: netns, nodes: 3, ranks_per_node: 1, rails: 2, rail_rate: 400Mbit}}
workload:
  kind: training
  iterations: 20
  warmup_iterations: 3
  compute: 10ms
  gradient: {{size: 2MiB, buckets: 2, dtype: f32, data: {}}}
strategies: {}
faults: {}
limits: {{deadline: 30s, give_up: 5s}}
repeat: 1
seed: 7
expect: {}
)",
                     data, strategies, faults, expect);
}

/// Rail 0 of the node, in the middle of iteration 8.
inline std::string portDown(const std::string& how, const std::string& duration, int node = 1) {
  return fmt::format(
      "[{{kind: port_down, how: {}, target: {{node: {}, rail: 0}}, "
      "during: {{iteration: 8, progress: 50%}}, duration: {}}}]",
      how, node, duration);
}

/// Runs scenarios with the real program, into a folder that goes with the test.
class RunTest : public ::testing::Test {
 protected:
  testing::Ran run(const std::string& text) {
    const std::string file = folder_.write("scenario.yaml", text);
    return testing::runFaultline({"run", file, "--out", out(), "--force"}, folder_.path());
  }
  std::string out() const { return folder_.path() / "out put"; }  // a path with a space
  reports::ScenarioResult result() const {
    auto read = reports::readResult(out());
    if (!read.ok()) throw std::runtime_error(read.status().message());
    return std::move(*read);
  }
  static reports::Run runOf(const reports::ScenarioResult& result, const std::string& strategy) {
    for (const reports::Run& run : result.runs) {
      if (run.strategy == strategy) return run;
    }
    throw std::runtime_error("no run of " + strategy);
  }

  testing::TemporaryFolder folder_;
};

}  // namespace faultline::run

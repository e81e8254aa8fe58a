#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/analysis/summary.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

inline constexpr const char* kPortDown =
    "  - {kind: port_down, target: {node: 1, rail: 0}, at: 170ms, duration: 40ms}\n";

/// fault_free, armed, fail_stop and hot_repair on four nodes with two rails; 10 iterations of 30 ms
/// compute; `more` is appended.
inline scenario::Scenario sampleScenario(const std::string& more = "repeat: 2\n",
                                         const std::string& data = "integers") {
  const std::string yaml =
      "version: 1\nname: sample\n"
      "cluster: {kind: netns, nodes: 4, rails: 2, rail_rate: 400Mbit}\n"
      "workload: {kind: training, iterations: 10, compute: 30ms,"
      " gradient: {size: 4MiB, buckets: 2, data: " +
      data +
      "}}\n"
      "strategies: [fault_free, armed, {fail_stop: {watchdog: 30ms}}, hot_repair]\n" +
      more;
  scenario::ReadResult read = scenario::readScenario(yaml, "sample");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

inline std::string faults(const std::string& faults) { return "repeat: 2\nfaults:\n" + faults; }

/// A completed run: ten iterations of 60 ms with gaps of 15 ms between them, nothing wrong.
inline reports::Run sampleRun(const std::string& strategy, int block, double throughput = 10) {
  reports::Run run;
  run.strategy = strategy;
  run.block = block;
  run.throughput = reports::Quantity{throughput, "iterations/s"};
  run.checked_elements = 1000;
  run.digest = "d1";
  for (int i = 0; i < 10; ++i) run.iterations.push_back({i, 75.0 * i, 60});
  run.duration_ms = 75 * 10 - 15;
  return run;
}

/// The same with a port_down of node 1, rail 0, seen by others.
inline reports::Run faultedRun(const std::string& strategy, int block, double throughput = 10) {
  reports::Run run = sampleRun(strategy, block, throughput);
  run.arm = reports::Arm::kFaulted;
  run.faulted = true;
  reports::AppliedFault fault;
  fault.kind = "port_down";
  fault.target = {1, 0, std::nullopt, "node 1, rail 0"};
  fault.start_ms = 150 + 20;  // the first bucket of iteration 2 is ready
  fault.end_ms = 150 + 60;
  run.faults.push_back(fault);
  run.evidence.push_back({0, "peer_carrier", "the other end lost its carrier", true});
  return run;
}

/// All runs of the scenario, with nothing wrong.
inline std::vector<reports::Run> sampleRuns(const scenario::Scenario& scenario) {
  std::vector<reports::Run> runs;
  for (int block = 0; block < scenario.repeat; ++block) {
    for (const scenario::Strategy& strategy : scenario.strategies) {
      const bool spared = strategy.name == "fault_free" || strategy.name == "armed";
      runs.push_back(spared ? sampleRun(strategy.name, block) : faultedRun(strategy.name, block));
    }
  }
  return runs;
}

/// These runs with the summary that sampleScenario() makes of them.
inline reports::ScenarioResult summarised(std::vector<reports::Run> runs) {
  reports::ScenarioResult result;
  result.runs = std::move(runs);
  result.summary = summarise(sampleScenario(), result.runs, 7);
  result.duration_ms = 5000;
  return result;
}

}  // namespace faultline::run

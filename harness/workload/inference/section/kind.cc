#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/inference/serving.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/inference/section/json.h"
#include "harness/workload/inference/section/reader.h"
#include "harness/workload/inference/section/table.h"
#include "harness/workload/training/section/checks.h"
#include "harness/workload/training/section/reader.h"

namespace faultline::scenario {
namespace {

constexpr std::array<std::string_view, 6> kServerKeys{"warmup_iterations", "model", "device",
                                                      "parallel",          "scale", "inference"};

void readServer(const WorkloadReading& reading, Workload& workload) {
  readServedModel(reading.root, reading.values, workload, reading.findings);
  readServing(reading.root, reading.values, reading.cluster.ranks(), workload, reading.findings);
}

void checkArrivals(const WorkloadChecking& checking) {
  const Scenario& scenario = checking.scenario;
  const auto& serving = scenario.workload.serving;
  if (!serving ||
      !checking.findings.usable({"workload.inference", "repeat", "seed", "limits.deadline"})) {
    return;
  }
  for (int block = 0; block < scenario.repeat; ++block) {
    const Duration arriving =
        inference::arrivingTime(inference::arrivalsOf(*serving, scenario.seed, block));
    if (arriving < scenario.limits.deadline) continue;
    checking.findings.add(
        locate(checking.root, "limits.deadline"),
        fmt::format("deadline: the requests of block {} arrive over {:.1f} s, and a run ends at "
                    "its deadline of {}: allow more than that, or ask for fewer requests",
                    block + 1, toMilliseconds(arriving) / 1000,
                    formatDuration(scenario.limits.deadline)));
    return;
  }
}

void checkServer(const WorkloadChecking& checking) {
  checkTraining(checking);
  checkArrivals(checking);
}

std::string whyNoneIsSpare(const Workload& /*workload*/) {
  return fmt::format(
      "each rank of a server has a part of the model that no other one has: use {}, which serves "
      "again what was under way",
      baseline::firstStrategy([](const auto& spec) { return spec.restarts; }).name);
}

std::string whyNotWritten(const Workload& /*workload*/) {
  return "a server reduces among the ranks of each copy of its model only: use 'workload: {kind: "
         "training}' or 'collective'";
}

Duration timeOfArrivals(const Scenario& scenario, int block) {
  return inference::arrivingTime(
      inference::arrivalsOf(*scenario.workload.serving, scenario.seed, block));
}

/// Those that decide what the instances do.
std::vector<int> firstRanks(const Scenario& scenario) {
  std::vector<int> ranks{0};
  if (scenario.workload.serving->disaggregated) ranks.push_back(scenario.cluster.ranks() / 2);
  return ranks;
}

std::string serverInWords(const Workload& workload) {
  return fmt::format("{} requests to {} on {}, scale {}{}", workload.iterations,
                     workload.model->model.name, workload.model->device.name, workload.model->scale,
                     workload.serving->disaggregated ? ", prefill and decode apart" : "");
}

std::string starterOfServer(const WorkloadStarter& starter) {
  return fmt::format(
      "  model: llama3.1-8b        # 'faultline list models' shows others\n"
      "  device: a100\n"
      "  parallel: {{tensor: {}}}\n"
      "  scale: 5000               # all times and bytes are so many times smaller\n"
      "  inference: {{qps: [10], requests: 40, prompt: {{mean: 500}}, output: "
      "{{mean: 16}}}}\n\n",
      starter.nodes);
}

WorkloadCounts countsOfServed(const Scenario& scenario, int block) {
  const auto rates = inference::arrivalsOf(*scenario.workload.serving, scenario.seed, block);
  WorkloadCounts counts{.rates = std::ssize(rates)};
  for (const inference::Arrivals& rate : rates) counts.requests += std::ssize(rate.requests);
  counts.iterations = std::max(counts.requests, std::int64_t{scenario.workload.warmupIterations});
  return counts;
}

}  // namespace

extern const WorkloadKind kInferenceWorkload;
constinit const WorkloadKind kInferenceWorkload{
    .name = "inference",
    .summary =
        "A server of a model: requests come as they like, are batched continuously, and "
        "have their latencies and goodput measured; every element of every message is "
        "checked.",
    .brief = "a server of a 'model'",
    .fields = inferenceFields,
    .keys = kServerKeys,
    .keepsState = false,
    .hasRequests = true,
    .whyNoBound = "no best possible: there is no model of how requests wait for each other",
    .read = readServer,
    .write = serverJson,
    .check = checkServer,
    .whyAllRanksAreNeeded = whyNoneIsSpare,
    .whyNoSchedule = whyNotWritten,
    .estimate = timeOfArrivals,
    .iterations = [](const Workload& workload) { return workload.iterations; },
    .counts = countsOfServed,
    .dataOfRank = trainingData,
    .tellers = firstRanks,
    .inWords = serverInWords,
    .starter = starterOfServer,
};

}  // namespace faultline::scenario

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/units.h"
#include "harness/scenario/call_time.h"
#include "harness/scenario/sweep.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/collective/section/json.h"
#include "harness/workload/collective/section/reader.h"
#include "harness/workload/collective/section/table.h"

namespace faultline::scenario {
namespace {

constexpr std::array<std::string_view, 4> kSweepKeys{"iterations", "warmup_iterations", "time",
                                                     "collective"};

void readCalls(const WorkloadReading& reading, Workload& workload) {
  workload.collective = readSweep(reading.root, reading.values, reading.findings);
}

std::string whyCallsDiffer(const Workload& workload, const Findings& findings) {
  if (!findings.usable({"workload.collective"}) || cellsOf(workload.collective).size() <= 1) {
    return "";
  }
  return "during: progress is measured against the warm-up, and the calls of this workload "
         "differ: give it one operation, size, type, operator and place, or write 'at'";
}

std::vector<WorkloadCall> callsOfCells(const Scenario& scenario) {
  const int ranks = scenario.cluster.ranks();
  std::vector<WorkloadCall> calls;
  for (const SweepCell& cell : cellsOf(scenario.workload.collective)) {
    const std::int64_t count = countOf(cell, ranks);
    calls.push_back(
        {hasBlocks(cell.operation) ? count * ranks : count, reduction::sizeOf(cell.dtype),
         fmt::format("a call of {} in {}", formatSize(cell.size), reduction::nameOf(cell.dtype))});
  }
  return calls;
}

std::span<const schedule::Collective> operationsOf(const Workload& workload) {
  return workload.collective.operations;
}

Duration timeOfSweep(const Scenario& scenario, int /*block*/) {
  double sum = 0;
  for (const SweepCell& cell : cellsOf(scenario.workload.collective)) {
    sum += secondsOfCall(scenario.cluster, cell.operation, cell.size);
  }
  return durationOfSeconds(sum *
                           (scenario.workload.iterations + scenario.workload.warmupIterations));
}

WorkloadCounts countsOfCalls(const Scenario& scenario, int /*block*/) {
  const Workload& workload = scenario.workload;
  return {.iterations = std::int64_t{std::max(workload.iterations, workload.warmupIterations)} *
                        std::ssize(cellsOf(workload.collective))};
}

int callsOf(const Workload& workload) {
  return workload.iterations * static_cast<int>(cellsOf(workload.collective).size());
}

Bytes largestBuffers(const Scenario& scenario) {
  Bytes largest = 0;
  for (const SweepCell& cell : cellsOf(scenario.workload.collective)) {
    largest = std::max(largest, bytesOf(cell, scenario.cluster.ranks()));
  }
  return 2 * largest;  // input and result
}

std::string sweepInWords(const Workload& workload) {
  return fmt::format("{} calls of each of {} combinations", workload.iterations,
                     cellsOf(workload.collective).size());
}

std::string starterOfSweep(const WorkloadStarter& /*starter*/) {
  return "  iterations: 60            # calls of each operation and size\n"
         "  collective: {operations: [all_reduce], sizes: [256KiB, 1MiB]}\n\n";
}

}  // namespace

extern const WorkloadKind kCollectiveWorkload;
constinit const WorkloadKind kCollectiveWorkload{
    .name = "collective",
    .summary =
        "Collective calls, one after the other, over sizes, types, operators and places, as "
        "nccl-tests measures them; every element of every result is checked.",
    .brief = "collective calls, as nccl-tests makes them",
    .fields = collectiveFields,
    .keys = kSweepKeys,
    .hasCells = true,
    .whyNoBound =
        "no best possible of all calls together: each operation and size has its own, in the "
        "table of collectives",
    .read = readCalls,
    .write = sweepJson,
    .whyNotDuring = whyCallsDiffer,
    .whyAllRanksAreNeeded =
        [](const Workload&) {
          return std::string("a sweep is of all ranks: use 'workload: {kind: training}'");
        },
    .whyNoSchedule = [](const Workload&) { return std::string(); },
    .calls = callsOfCells,
    .operations = operationsOf,
    .estimate = timeOfSweep,
    .iterations = callsOf,
    .counts = countsOfCalls,
    .dataOfRank = largestBuffers,
    .inWords = sweepInWords,
    .starter = starterOfSweep,
};

}  // namespace faultline::scenario

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/model/training_program.h"
#include "harness/scenario/call_time.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/training/section/checks.h"
#include "harness/workload/training/section/json.h"
#include "harness/workload/training/section/reader.h"
#include "harness/workload/training/section/table.h"

namespace faultline::scenario {
namespace {

constexpr std::array<std::string_view, 12> kTrainingKeys{
    "iterations", "warmup_iterations", "time",          "compute",     "gradient", "model",
    "device",     "parallel",          "micro_batches", "micro_batch", "sequence", "scale"};

void readTrained(const WorkloadReading& reading, Workload& workload) {
  readTraining(reading.root, reading.values, reading.cluster.ranks(), workload, reading.findings);
}

std::string whyNoneMayGo(const Workload& workload) {
  if (workload.model && !workload.model->onlyCopies()) {
    return "each rank has a part of the model that no other one has; it needs 'parallel' with "
           "nothing but 'data', and without 'zero'";
  }
  if (workload.gradient.data != DataKind::kRandom) return "";
  return fmt::format(
      "results of fewer ranks differ from those of {}: write 'data: integers', of which every "
      "element is checked",
      baseline::kReferenceRow);
}

std::string whyGroups(const Workload& workload) {
  if (!workload.model || workload.model->onlyCopies()) return "";
  return "ranks that have parts of a model reduce in groups: it needs 'parallel' with nothing but "
         "'data', and without 'zero'";
}

std::vector<WorkloadCall> callsOfBuckets(const Scenario& scenario) {
  const Workload& workload = scenario.workload;
  const Bytes size = reduction::sizeOf(workload.gradient.dtype);
  constexpr auto kBucket = "a bucket of the gradient";
  std::vector<WorkloadCall> calls;
  if (workload.model) {
    for (const model::Call& call : model::programOf(*workload.model, 0).calls) {
      calls.push_back({call.elements(), size, kBucket});
    }
    return calls;
  }
  const Bytes elements = workload.gradient.size / size;
  calls.push_back({elements / workload.gradient.buckets, size, kBucket});
  // The first ones are larger by an element (workload::bucketOf).
  if (elements % workload.gradient.buckets != 0) {
    calls.push_back({calls.front().elements + 1, size, kBucket});
  }
  return calls;
}

Duration timeOfIterations(const Scenario& scenario, int /*block*/) {
  const Workload& workload = scenario.workload;
  return durationOfSeconds(secondsOfIteration(scenario) *
                           (workload.iterations + workload.warmupIterations));
}

std::string trainingInWords(const Workload& workload) {
  if (workload.model) {
    return fmt::format("{} iterations of {} on {}, scale {}", workload.iterations,
                       workload.model->model.name, workload.model->device.name,
                       workload.model->scale);
  }
  return fmt::format("{} iterations, gradient {} in {} buckets", workload.iterations,
                     formatSize(workload.gradient.size), workload.gradient.buckets);
}

std::string starterOfTraining(const WorkloadStarter& /*starter*/) {
  return "  iterations: 40\n"
         "  compute: 20ms             # of each iteration\n"
         "  gradient: {size: 1MiB, buckets: 4, dtype: f32, data: integers}\n\n";
}

}  // namespace

extern const WorkloadKind kTrainingWorkload;
constinit const WorkloadKind kTrainingWorkload{
    .name = "training",
    .summary =
        "Training: iterations of compute, with a bucketed gradient AllReduce that overlaps "
        "it, or what follows from a model that is divided over the ranks; every element of "
        "every result is checked.",
    .brief = "compute and a gradient AllReduce that overlaps it, or what follows from a 'model'",
    .fields = trainingFields,
    .keys = kTrainingKeys,
    .mayLoseRanks = true,
    .hasBound = true,
    .read = readTrained,
    .write = trainingJson,
    .check = checkTraining,
    .whyAllRanksAreNeeded = whyNoneMayGo,
    .whyNoSchedule = whyGroups,
    .calls = callsOfBuckets,
    .estimate = timeOfIterations,
    .iterations = [](const Workload& workload) { return workload.iterations; },
    .dataOfRank = trainingData,
    .inWords = trainingInWords,
    .starter = starterOfTraining,
};

}  // namespace faultline::scenario

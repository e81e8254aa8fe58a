#include "harness/scenario/workload_kind.h"

#include <algorithm>
#include <array>

#include "harness/scenario/command_reader.h"
#include "harness/scenario/inference_reader.h"
#include "harness/scenario/sweep_reader.h"
#include "harness/scenario/training_reader.h"
#include "harness/scenario/workload_json.h"

namespace faultline::scenario {
namespace {

constexpr std::array<std::string_view, 12> kTrainingKeys{
    "iterations", "warmup_iterations", "time",          "compute",     "gradient", "model",
    "device",     "parallel",          "micro_batches", "micro_batch", "sequence", "scale"};
constexpr std::array<std::string_view, 4> kSweepKeys{"iterations", "warmup_iterations", "time",
                                                     "collective"};
constexpr std::array<std::string_view, 6> kServerKeys{"warmup_iterations", "model", "device",
                                                      "parallel",          "scale", "inference"};
constexpr std::array<std::string_view, 1> kCommandKeys{"command"};

void readTrained(const WorkloadReading& reading, Workload& workload) {
  readTraining(reading.root, reading.values, reading.cluster.ranks(), workload, reading.findings);
}

void readCalls(const WorkloadReading& reading, Workload& workload) {
  workload.collective = readSweep(reading.root, reading.values, reading.findings);
}

void readServed(const WorkloadReading& reading, Workload& workload) {
  readTrained(reading, workload);  // its model
  readServing(reading.root, reading.values, reading.cluster.ranks(), workload, reading.findings);
}

void readPrograms(const WorkloadReading& reading, Workload& workload) {
  workload.command = readCommand(reading.root, reading.values, reading.cluster, reading.findings);
}

constexpr std::array kKinds{
    WorkloadKind{
        .name = "training",
        .summary = "Training: iterations of compute, with a bucketed gradient AllReduce that "
                   "overlaps it, or "
                   "what follows from a model that is divided over the ranks; every element of "
                   "every result "
                   "is checked.",
        .keys = kTrainingKeys,
        .read = readTrained,
        .write = trainingJson,
    },
    WorkloadKind{
        .name = Workload::kCollectiveKind,
        .summary =
            "Collective calls, one after the other, over sizes, types, operators and places, as "
            "nccl-tests measures them; every element of every result is checked.",
        .keys = kSweepKeys,
        .read = readCalls,
        .write = sweepJson,
    },
    WorkloadKind{
        .name = Workload::kInferenceKind,
        .summary = "A server of a model: requests come as they like, are batched continuously, and "
                   "have their "
                   "latencies and goodput measured; every element of every message is checked.",
        .keys = kServerKeys,
        .read = readServed,
        .write = serverJson,
    },
    WorkloadKind{
        .name = Workload::kCommandKind,
        .summary = "Any program (torchrun, nccl-tests, iperf3), on the nodes under the faults: how "
                   "it ends, "
                   "how fast it is, and the numbers that it tells. Its data are not checked.",
        .keys = kCommandKeys,
        .read = readPrograms,
        .write = commandJson,
    },
};

constexpr auto kNames = [] {
  std::array<std::string_view, kKinds.size()> names{};
  std::ranges::transform(kKinds, names.begin(), &WorkloadKind::name);
  return names;
}();

}  // namespace

std::span<const WorkloadKind> workloadKinds() { return kKinds; }
std::span<const std::string_view> workloadKindNames() { return kNames; }

const WorkloadKind& workloadKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &WorkloadKind::name);
  return found == kKinds.end() ? kKinds.front() : *found;
}

bool hasWorkloadKey(std::string_view kind, std::string_view key) {
  return key == "kind" || std::ranges::count(workloadKind(kind).keys, key) > 0;
}

}  // namespace faultline::scenario

#include "harness/workload/training/section/json.h"

#include "harness/scenario/json.h"
#include "harness/scenario/workload_json.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

/// Cards in full, also of presets: a result says what was run when presets have changed.
void addModel(const model::Training& training, Json& workload) {
  workload["model"] = scenario::toJson(training.model);
  const model::DeviceCard& device = training.device;
  workload["device"] = {
      {"name", device.name},
      {"gflops", device.gflops},
      {"efficiency", formatParameter(Percent{device.efficiency * kWholeInPercent})},
      {"memory", formatSize(device.memory)}};
  if (device.memoryBandwidth > 0) {
    workload["device"]["memory_bandwidth"] = formatSize(device.memoryBandwidth);
  }
  const model::Parallel& parallel = training.parallel;
  workload["parallel"] = {{"data", parallel.data},
                          {"tensor", parallel.tensor},
                          {"pipeline", parallel.pipeline},
                          {"expert", parallel.expert},
                          {"zero", parallel.zero}};
  workload["micro_batches"] = training.microBatches;
  workload["micro_batch"] = training.microBatch;
  workload["sequence"] = training.sequence;
  workload["scale"] = training.scale;
}

Json trainingJson(const Workload& workload) {
  Json json = iterationsJson(workload);
  if (workload.model) {
    addModel(*workload.model, json);
    json["gradient"] = {{"buckets", workload.gradient.buckets},
                        {"data", name(workload.gradient.data)}};
    return json;
  }
  const std::string compute = formatDuration(workload.compute.duration);
  json["compute"] = workload.compute.burn ? Json{{"burn", compute}} : Json(compute);
  json["gradient"] = {{"size", formatSize(workload.gradient.size)},
                      {"buckets", workload.gradient.buckets},
                      {"dtype", name(workload.gradient.dtype)},
                      {"data", name(workload.gradient.data)}};
  return json;
}

}  // namespace faultline::scenario

#include "harness/scenario/workload_json.h"

#include "harness/command/extract.h"
#include "harness/scenario/json.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

/// Cards in full, also of presets: a result says what was run when presets have changed.
void addTraining(const model::Training& training, Json& workload) {
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

Json toJson(const inference::Lengths& lengths) {
  return {{"mean", lengths.mean},
          {"spread", inference::nameOf(lengths.spread)},
          {"cv", formatParameter(Percent{lengths.cv * kWholeInPercent})}};
}

Json toJson(const inference::Serving& serving) {
  Json json = Json::object();
  if (serving.traceFile.empty()) {
    json = {{"qps", serving.qps},
            {"requests", serving.requests},
            {"prompt", toJson(serving.prompt)},
            {"output", toJson(serving.output)}};
  } else {
    json["trace"] = serving.traceFile;
  }
  json["batch"] = serving.batch;
  json["prefill_tokens"] = serving.prefillTokens;
  json["disaggregated"] = serving.disaggregated;
  json["objectives"] = {{"ttft", formatDuration(serving.objectives.ttft)},
                        {"tpot", formatDuration(serving.objectives.tpot)}};
  return json;
}

Json toJson(const command::Command& command) {
  Json json{{"run", command.run},
            {"per_node", command.perNode},
            {"nodes", command.nodes},
            {"env", command.environment}};
  if (!command.workingDirectory.empty()) json["workdir"] = command.workingDirectory;
  if (command.timeLimit) json["time_limit"] = formatDuration(*command.timeLimit);
  json["success_exit"] = command.successExit;
  if (!command.progress.empty()) json["progress"] = command.progress;
  Json& metrics = json["metrics"] = Json::object();
  for (const command::Metric& metric : command.metrics) {
    Json& keys = metrics[metric.name] = Json::object();
    if (!metric.regex.empty()) keys["regex"] = metric.regex;
    if (!metric.json.empty()) keys = {{"json", metric.json}, {"path", metric.path}};
    if (!metric.unit.empty()) keys["unit"] = metric.unit;
    keys["take"] = command::nameOf(metric.take);
  }
  if (!command.throughput.empty()) json["throughput"] = command.throughput;
  return json;
}

/// What calls and iterations have in common.
Json iterationsJson(const Workload& workload) {
  Json json{{"kind", workload.kind},
            {"iterations", workload.iterations},
            {"warmup_iterations", workload.warmupIterations}};
  if (workload.time) json["time"] = formatDuration(*workload.time);
  return json;
}

}  // namespace

Json commandJson(const Workload& workload) {
  return {{"kind", workload.kind}, {"command", toJson(workload.command)}};
}

/// What its sizes and times follow from, without what only training has.
Json serverJson(const Workload& workload) {
  if (!workload.model || !workload.serving) return trainingJson(workload);
  Json all = Json::object();
  addTraining(*workload.model, all);
  return {{"kind", workload.kind},
          {"warmup_iterations", workload.warmupIterations},
          {"model", all["model"]},
          {"device", all["device"]},
          {"parallel",
           {{"tensor", workload.model->parallel.tensor},
            {"pipeline", workload.model->parallel.pipeline}}},
          {"scale", workload.model->scale},
          {"inference", toJson(*workload.serving)}};
}

Json sweepJson(const Workload& workload) {
  Json json = iterationsJson(workload);
  const Sweep& sweep = workload.collective;
  Json& keys = json["collective"] = Json::object();
  for (const auto operation : sweep.operations) {
    keys["operations"].push_back(schedule::collectiveName(operation));
  }
  for (const Bytes size : sweep.sizes) keys["sizes"].push_back(formatSize(size));
  for (const DataType dtype : sweep.dtypes) keys["dtypes"].push_back(name(dtype));
  for (const auto op : sweep.ops) keys["ops"].push_back(reduction::nameOf(op));
  keys["place"] = name(sweep.place);
  keys["settle_calls"] = sweep.settleCalls;
  return json;
}

Json trainingJson(const Workload& workload) {
  Json json = iterationsJson(workload);
  if (workload.model) {
    addTraining(*workload.model, json);
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

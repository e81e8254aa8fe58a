#include "harness/scenario/json.h"

#include "harness/baseline/strategy_table.h"
#include "harness/command/extract.h"
#include "harness/scenario/lifetime.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers and flags as such, everything with a unit as text.
Json toJson(const ParameterValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* decimal = std::get_if<double>(&value)) return *decimal;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return formatParameter(value);
}

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

/// What its sizes and times follow from, without what only training has.
Json serverJson(const Workload& workload) {
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

Json toJson(const Workload& workload) {
  if (workload.isForeign()) return {{"kind", workload.kind}, {"command", toJson(workload.command)}};
  if (workload.serves() && workload.model && workload.serving) return serverJson(workload);
  const std::string compute = formatDuration(workload.compute.duration);
  Json json{{"kind", workload.kind},
            {"iterations", workload.iterations},
            {"warmup_iterations", workload.warmupIterations}};
  if (workload.time) json["time"] = formatDuration(*workload.time);
  if (workload.sweeps()) {
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
  if (workload.model) {
    addTraining(*workload.model, json);
    json["gradient"] = {{"buckets", workload.gradient.buckets},
                        {"data", name(workload.gradient.data)}};
    return json;
  }
  json["compute"] = workload.compute.burn ? Json{{"burn", compute}} : Json(compute);
  json["gradient"] = {{"size", formatSize(workload.gradient.size)},
                      {"buckets", workload.gradient.buckets},
                      {"dtype", name(workload.gradient.dtype)},
                      {"data", name(workload.gradient.data)}};
  return json;
}

Json toJson(const Lifetime& lifetime) {
  Json json{{"distribution", name(lifetime.kind)}};
  if (lifetime.kind == Lifetime::Kind::kWeibull) json["shape"] = lifetime.shape;
  if (lifetime.kind == Lifetime::Kind::kLognormal) json["sigma"] = lifetime.sigma;
  return json;
}

Json toJson(const FaultProcess& process) {
  Json kinds = Json::array();
  for (const FaultProcess::Kind& kind : process.kinds) {
    Json parameters = Json::object();
    for (const auto& [name, value] : kind.parameters.all()) parameters[name] = toJson(value);
    parameters["weight"] = kind.weight;
    kinds.push_back(Json{{kind.name, std::move(parameters)}});
  }
  Json json{{"kinds", std::move(kinds)},
            {"per", name(process.per)},
            {"mtbf", formatDuration(process.failures.mean)},
            {"failures", toJson(process.failures)},
            {"mttr", formatDuration(process.repairs.mean)},
            {"repairs", toJson(process.repairs)},
            {"accelerate", process.accelerate}};
  if (!process.nodes.empty()) json["nodes"] = process.nodes;
  if (!process.rails.empty()) json["rails"] = process.rails;
  json["at_most"] = process.atMost;
  json["spare_rails"] = process.spareRails;
  json["rest"] = formatDuration(process.rest);
  json["shortest"] = formatDuration(process.shortest);
  json["for"] = formatDuration(process.length);
  return json;
}

Json toJson(const Limits& limits) {
  Json json = Json::object();
  eachLimit(limits, [&](std::string_view name, const auto& limit) {
    using Limit = std::remove_cvref_t<decltype(limit)>;
    Json& value = json[std::string(name)];
    if constexpr (std::is_same_v<Limit, Duration>) value = formatDuration(limit);
    if constexpr (std::is_same_v<Limit, Bytes>) value = formatSize(limit);
    if constexpr (std::is_same_v<Limit, int>) value = limit;
  });
  return json;
}

/// What is for ranks of our own, a row of programs that are not ours has not.
bool isSaid(const Strategy& strategy, const std::string& option, bool foreign) {
  if (!foreign) return true;
  if (!strategy.options.has(baseline::kMode)) return false;
  const auto mode = strategy.options.get<std::string>(baseline::kMode);
  return option == baseline::kMode || (option == baseline::kWait && baseline::rebuildsItself(mode));
}

}  // namespace

std::string_view name(DataType type) { return nameOf(type); }

std::string_view name(TelemetryMode mode) {
  switch (mode) {
    case TelemetryMode::kOff:
      return "off";
    case TelemetryMode::kNull:
      return "null";
    case TelemetryMode::kOn:
      return "on";
  }
  return "unknown";
}

std::string_view name(After::Mark mark) {
  switch (mark) {
    case After::Mark::kBegin:
      return "begin";
    case After::Mark::kEnd:
      return "end";
    case After::Mark::kRecovery:
      return "recovery";
  }
  return "unknown";
}

std::string_view name(FaultProcess::Element element) {
  return element == FaultProcess::Element::kNic ? "nic" : "rail";
}

std::string_view name(Place place) {
  switch (place) {
    case Place::kOut:
      return "out";
    case Place::kIn:
      return "in";
    case Place::kBoth:
      return "both";
  }
  return "unknown";
}

std::string_view name(DataKind kind) {
  switch (kind) {
    case DataKind::kIntegers:
      return "integers";
    case DataKind::kRandom:
      return "random";
  }
  return "unknown";
}

Json toJson(const Fault& fault) {
  Json json{{"kind", fault.kind}};
  for (const auto& [name, value] : fault.parameters.all()) json[name] = toJson(value);
  if (fault.target) {
    Json& target = json["target"] = {{"node", fault.target->node}};
    if (fault.target->part == Part::kRail) target["rail"] = fault.target->rail;
    if (fault.target->peer) target["peer"] = *fault.target->peer;
    if (fault.target->part == Part::kManagement) target["network"] = "management";
    if (fault.target->rank) target = {{"rank", *fault.target->rank}};
    if (fault.target->part == Part::kRailGroup) {
      target = {{"rail_group", fault.target->rail}};
      if (!fault.target->nodes.empty()) target["nodes"] = fault.target->nodes;
    }
  }
  if (const At* at = std::get_if<At>(&fault.trigger)) {
    json["at"] = formatDuration(at->time);
  } else if (std::holds_alternative<BeforeStart>(fault.trigger)) {
    json["before"] = "start";
  } else if (const After* after = std::get_if<After>(&fault.trigger)) {
    json["after"] = formatDuration(after->delay);
    json["from"] = name(after->mark);
  } else if (const During* during = std::get_if<During>(&fault.trigger)) {
    constexpr double kPercent = 100;
    json["during"] = {{"iteration", during->iteration},
                      {"progress", formatParameter(Percent{during->progress * kPercent})}};
  } else {
    for (const auto& [time, duration] : std::get<Moments>(fault.trigger).list) {
      json["moments"].push_back({{"at", formatDuration(time)}, {"for", formatDuration(duration)}});
    }
    return json;
  }
  if (fault.duration) {
    json["duration"] = formatDuration(*fault.duration);
  } else {
    json["until"] = "end";
  }
  if (fault.times > 1 && fault.every > Duration::zero()) {
    json["times"] = fault.times;
    json["every"] = formatDuration(fault.every);
  }
  return json;
}

nlohmann::ordered_json toJson(const model::ModelCard& card) {
  return {{"name", card.name},
          {"family", model::name(card.family)},
          {"layers", card.layers},
          {"hidden", card.hidden},
          {"heads", card.heads},
          {"kv_heads", card.kvHeads},
          {"ffn", card.ffn},
          {"vocabulary", card.vocabulary},
          {"sequence", card.sequence},
          {"experts", card.experts},
          {"active_experts", card.activeExperts},
          {"dtype", name(card.dtype)}};
}

nlohmann::ordered_json toJson(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  Json json{{"version", scenario.version},
            {"name", scenario.name},
            {"description", scenario.description},
            {"cluster",
             {{"kind", cluster.kind->name},
              {"nodes", cluster.nodes},
              {"ranks_per_node", cluster.ranksPerNode},
              {"rails", cluster.rails}}},
            {"workload", toJson(scenario.workload)},
            {"strategies", Json::array()},
            {"faults", Json::array()},
            {"limits", toJson(scenario.limits)},
            {"noise",
             {{"void_above", formatParameter(Percent{scenario.noise.bandPercent})},
              {"latency_void_above", formatParameter(Percent{scenario.noise.latencyPercent})},
              {"drift_above", formatParameter(Percent{scenario.noise.driftPercent})},
              {"drift_check", scenario.noise.driftRuns},
              {"across_blocks", scenario.noise.acrossBlocks ? "on" : "off"},
              {"keep_awake", scenario.noise.keepAwake ? "on" : "off"}}},
            {"telemetry", name(scenario.telemetry)},
            {"io_threads", scenario.ioThreads},
            {"repeat", scenario.repeat},
            {"seed", scenario.seed},
            {"expect", Json::array()}};
  if (cluster.kind->shapesRails) json["cluster"]["rail_rate"] = formatRate(cluster.railRate);
  if (!cluster.congestionControl.empty()) {
    json["cluster"]["congestion_control"] = cluster.congestionControl;
  }
  for (const Strategy& strategy : scenario.strategies) {
    Json options = Json::object();
    if (!strategy.does.empty()) options[baseline::rowNameSpec().name] = strategy.name;
    for (const auto& [option, value] : strategy.options.all()) {
      if (isSaid(strategy, option, scenario.workload.isForeign())) options[option] = toJson(value);
    }
    if (!strategy.environment.empty()) {
      options[baseline::rowEnvironmentSpec().name] = strategy.environment;
    }
    json["strategies"].push_back(Json{{strategy.kind(), std::move(options)}});
  }
  if (scenario.workload.isForeign()) {
    // Nobody tells programs that are not ours of these, so that they cannot be read again.
    json["limits"] = {{"deadline", formatDuration(scenario.limits.deadline)}};
    json.erase("telemetry");
    json.erase("io_threads");
  }
  for (const Fault& fault : scenario.faults) json["faults"].push_back(toJson(fault));
  for (const Sequence& sequence : scenario.sequences) {
    Json& list =
        json["sequences"].emplace_back(Json{{"faults", Json::array()},
                                            {"repeat", sequence.repeat},
                                            {"pause", formatDuration(sequence.pause)}})["faults"];
    for (const Fault& fault : sequence.faults) list.push_back(toJson(fault));
  }
  for (const FaultProcess& process : scenario.processes) {
    json["fault_processes"].push_back(toJson(process));
  }
  for (const Expectation& expectation : scenario.expect) {
    json["expect"].push_back(expectation.text);
  }
  return json;
}

}  // namespace faultline::scenario

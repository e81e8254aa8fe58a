#include "harness/scenario/json.h"

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/lifetime.h"
#include "harness/scenario/workload_kind.h"

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

/// What the kind of a cluster adds to it, or has in another way.
void addOfItsKind(const Cluster& cluster, Json& json) {
  const site::RailChoice& rails = cluster.railChoice;
  if (rails.automatic) json["rails"] = kAutomatic;
  if (!rails.names.empty()) json["rails"] = rails.names;
  if (!rails.byNode.empty()) json["rails"] = rails.byNode;
  if (cluster.kind->nodes != nullptr) json.erase("nodes");
  const bool rated = cluster.kind->findsRails && cluster.railRate != 0;
  if (cluster.kind->shapesRails || rated) json["rail_rate"] = formatRate(cluster.railRate);
  for (const site::Setting& setting : cluster.kind->settings) {
    const auto said = cluster.settings.find(setting.spec.name);
    if (said == cluster.settings.end()) continue;
    json[said->first] = setting.list
                            ? Json(said->second)
                            : toJson(parseParameter(setting.spec, said->second.front()).value());
  }
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
            {"workload", scenario.workload.kind->write(scenario.workload)},
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
  addOfItsKind(cluster, json["cluster"]);
  if (!cluster.congestionControl.empty()) {
    json["cluster"]["congestion_control"] = cluster.congestionControl;
  }
  for (const Strategy& strategy : scenario.strategies) {
    Json options = Json::object();
    if (!strategy.does.empty()) options[baseline::rowNameSpec().name] = strategy.name;
    for (const auto& [option, value] : strategy.options.all()) {
      if (isSaid(strategy, option, !scenario.workload.kind->runsRanks))
        options[option] = toJson(value);
    }
    if (!strategy.environment.empty()) {
      options[baseline::rowEnvironmentSpec().name] = strategy.environment;
    }
    json["strategies"].push_back(Json{{strategy.kind(), std::move(options)}});
  }
  if (!scenario.workload.kind->runsRanks) {
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

#include "harness/scenario/interpret.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/document.h"
#include "harness/scenario/expectation_check.h"
#include "harness/scenario/fault_process_reader.h"
#include "harness/scenario/fault_reader.h"
#include "harness/scenario/json.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/metric_table.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/schedule_reader.h"
#include "harness/scenario/vocabulary.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {
namespace {

/// From tree to struct, guided by the tables.
class ScenarioReader {
 public:
  ScenarioReader(const Node& root, const std::string& folder, Findings& findings)
      : root_(root), folder_(folder), findings_(findings), records_(findings) {}

  Scenario read() {
    Parameters values;
    records_.read(&root_, root_.where, scenarioTable(), "", values);
    Scenario scenario;
    scenario.version = integer(values, "version");
    scenario.name = values.get<std::string>("name");
    if (values.has("description")) scenario.description = values.get<std::string>("description");
    scenario.cluster = readCluster(root_, values, findings_);
    const auto* const kind = findWorkloadKind(values.get<std::string>("workload.kind"));
    if (kind != nullptr) scenario.workload.kind = kind;  // otherwise it is told by now
    scenario.workload.iterations = integer(values, "workload.iterations");
    scenario.workload.warmupIterations = integer(values, "workload.warmup_iterations");
    if (values.has("workload.time")) {
      scenario.workload.time = values.get<Duration>("workload.time");
    }
    scenario.workload.kind->read(
        {.root = root_, .values = values, .cluster = scenario.cluster, .findings = findings_},
        scenario.workload);
    scenario.limits = limitsOf(values);
    scenario.telemetry = telemetryMode(values.get<std::string>("telemetry"));
    scenario.ioThreads = integer(values, "io_threads");
    scenario.repeat = integer(values, "repeat");
    scenario.seed = static_cast<std::uint64_t>(values.get<std::int64_t>("seed"));
    scenario.strategies = readStrategies();
    scenario.faults = readFaults();
    scenario.sequences = readSequences();
    scenario.processes = readProcesses();
    scenario.noise = noiseOf(values, scenario);
    scenario.expect = readExpectations(scenario);
    return scenario;
  }

 private:
  static Limits limitsOf(const Parameters& values) {
    Limits limits;
    eachLimit(limits, [&](std::string_view name, auto& limit) {
      const std::string path = fmt::format("limits.{}", name);
      using Limit = std::remove_reference_t<decltype(limit)>;
      if constexpr (std::is_same_v<Limit, Duration>) limit = values.get<Duration>(path);
      if constexpr (std::is_same_v<Limit, Bytes>) limit = values.get<Size>(path).bytes;
      if constexpr (std::is_same_v<Limit, int>) limit = integer(values, path);
    });
    return limits;
  }

  static NoiseLimits noiseOf(const Parameters& values, const Scenario& scenario) {
    NoiseLimits noise;
    noise.bandPercent = values.get<Percent>("noise.void_above").value;
    noise.latencyPercent = values.get<Percent>("noise.latency_void_above").value;
    noise.driftPercent = values.get<Percent>("noise.drift_above").value;
    noise.driftRuns = integer(values, "noise.drift_check");
    noise.acrossBlocks = values.get<std::string>("noise.across_blocks") == "on";
    noise.keepAwake = values.get<std::string>("noise.keep_awake") == "on";
    if (noise.driftRuns == 0) return noise;
    const std::string free(baseline::kReferenceRow);
    const Strategy* const listed = scenario.find(free);
    noise.driftRow.name = NoiseLimits::kDriftRow;
    noise.driftRow.does = free;
    if (listed != nullptr) noise.driftRow.environment = listed->environment;
    noise.driftRow.options =
        listed != nullptr ? listed->options
                          : *Parameters::parse(free, baseline::findStrategy(free)->options, {});
    return noise;
  }

  /// The elements of a list under a key of the scenario; none, with a message, if it is no list.
  std::span<const Node> elements(std::string_view key, std::string_view of) {
    const Node* const list = root_.find(key);
    if (list == nullptr) return {};
    if (list->kind != Node::Kind::kList) {
      findings_.addAt(
          std::string(key), list->where,
          fmt::format("{}: a list of {} is expected, not {}", key, of, describe(*list)));
      return {};
    }
    if (list->items.size() > kMostElements) {
      findings_.addAt(std::string(key), list->where,
                      fmt::format("{}: has {} elements; {} are possible", key, list->items.size(),
                                  kMostElements));
      return {};
    }
    return list->items;
  }

  std::vector<Strategy> readStrategies() {
    std::vector<std::string_view> known;
    for (const auto& spec : baseline::strategies()) known.push_back(spec.name);
    std::vector<Strategy> strategies;
    const auto nodes = elements("strategies", "strategies");
    if (nodes.empty() && root_.find("strategies") != nullptr && findings_.usable({"strategies"})) {
      findings_.addAt("strategies", root_.find("strategies")->where,
                      "strategies: at least one is needed; known are " + join(known, ", "));
    }
    strategies_readable_ = findings_.usable({"strategies"});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string path = fmt::format("strategies.{}", i);
      readStrategy(nodes[i], path, known, strategies);
      strategies_readable_ = strategies_readable_ && findings_.usable({path});
    }
    return strategies;
  }

  void readStrategy(const Node& node, const std::string& path,
                    std::span<const std::string_view> known, std::vector<Strategy>& strategies) {
    std::string name;  // of what it does
    Location where = node.where;
    const Node* options = nullptr;
    if (node.kind == Node::Kind::kScalar) {
      name = node.text;
    } else if (node.kind == Node::Kind::kMap && node.entries.size() == 1) {
      name = node.entries.front().key;
      where = node.entries.front().where;
      options = &node.entries.front().value;
    } else {
      findings_.addAt(path, where,
                      fmt::format("a strategy is a name or {{name: {{option: value}}}}, not {}",
                                  describe(node)));
      return;
    }
    const auto* spec = baseline::findStrategy(name);
    const bool is_known = spec != nullptr;
    if (!is_known) {
      findings_.addAt(
          path, where,
          fmt::format("unknown strategy '{}'{}", shortened(name), suggestion(name, known)));
      // Its options are those of the one that was meant.
      spec = baseline::findStrategy(closestWord(name, known));
      if (spec == nullptr) return;
      name = spec->name;
    }
    if (options != nullptr && options->kind == Node::Kind::kNull) options = nullptr;
    if (options != nullptr && options->kind != Node::Kind::kMap) {
      findings_.addAt(
          path, options->where,
          fmt::format("{}: a mapping of options is expected, not {}", name, describe(*options)));
      options = nullptr;
    }
    const std::string options_path = joinPath(path, name);
    if (options != nullptr) {
      std::vector<std::string_view> keys;
      for (const ParameterSpec& option : spec->options) keys.push_back(option.name);
      keys.push_back(baseline::rowNameSpec().name);
      keys.push_back(baseline::rowEnvironmentSpec().name);
      if (spec->written) keys.push_back(baseline::kContent);
      records_.refuseUnknownKeys(*options, keys, options_path);
    }
    Strategy strategy{name,
                      records_.readParameters(options, where, name, spec->options, options_path)};
    readRowName(options, path, strategy);
    if (spec->written && findings_.usable({joinPath(options_path, baseline::kSchedule)})) {
      readScheduleText(options, where, folder_, options_path, strategy, findings_);
      if (strategy.does.empty()) nameAfterFile(where, path, strategy);
    }
    const std::string_view env = baseline::rowEnvironmentSpec().name;
    if (const Node* const texts = options == nullptr ? nullptr : options->find(env)) {
      strategy.environment = records_.readTexts(*texts, env, joinPath(options_path, env));
    }
    if (!is_known) return;
    if (std::ranges::find(strategies, strategy.name, &Strategy::name) != strategies.end()) {
      findings_.addAt(path, where,
                      fmt::format("strategy '{}' is listed twice: its rows in the report could not "
                                  "be told apart; 'as' gives one of them another name",
                                  strategy.name));
      return;
    }
    strategies.push_back(std::move(strategy));
  }

  /// `as`: a word that expectations cannot take for anything else.
  void readRowName(const Node* options, const std::string& path, Strategy& strategy) {
    const ParameterSpec& spec = baseline::rowNameSpec();
    const Node* const node = options == nullptr ? nullptr : options->find(spec.name);
    if (node == nullptr) return;
    const std::string name = std::get<std::string>(records_.readScalar(*node, spec, path));
    if (!findings_.usable({path})) return;
    if (const std::string why = whyNoRowName(name); !why.empty()) {
      findings_.addAt(path, node->where, fmt::format("as: '{}' {}", name, why));
      return;
    }
    strategy.does = std::move(strategy.name);
    strategy.name = name;
  }

  /// A row whose schedule is written down, without `as`.
  void nameAfterFile(Location where, const std::string& path, Strategy& strategy) {
    const std::string name = rowNameOf(strategy.options.get<std::string>(baseline::kSchedule));
    const std::string why =
        name.empty() ? "is not fit for a name: give it one with 'as'" : whyNoRowName(name);
    if (!why.empty()) {
      findings_.addAt(path, where,
                      fmt::format("schedule: the row would be called '{}' as its file, and that {} "
                                  "('as: NAME')",
                                  name, why));
      return;
    }
    strategy.does = std::move(strategy.name);
    strategy.name = name;
  }

  /// Empty, or why expectations would take it for something else.
  static std::string whyNoRowName(const std::string& name) {
    const bool of_strategy = baseline::findStrategy(name) != nullptr;
    const bool of_metric = std::ranges::any_of(metricTable(), [&](const Metric& metric) {
      return metric.path.substr(0, metric.path.find('.')) == name;
    });
    const bool dotted = name.find('.') != std::string::npos;
    const bool reserved = name == NoiseLimits::kDriftRow;
    if (dotted) return "has a dot; expectations have one behind the row's name";
    if (reserved) return "is the row of noise.drift_check: choose another one";
    if (of_strategy) return "is the name of a strategy: choose another one";
    return of_metric ? "is the name of a metric: choose another one" : "";
  }

  std::vector<Fault> readFaults() {
    std::vector<Fault> faults;
    const auto nodes = elements("faults", "faults");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      faults.push_back(readFault(nodes[i], fmt::format("faults.{}", i), findings_));
    }
    return faults;
  }

  std::vector<Sequence> readSequences() {
    std::vector<Sequence> sequences;
    const auto nodes = elements("sequences", "sequences");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      sequences.push_back(readSequence(nodes[i], fmt::format("sequences.{}", i), findings_));
    }
    return sequences;
  }

  std::vector<FaultProcess> readProcesses() {
    std::vector<FaultProcess> processes;
    const auto nodes = elements("fault_processes", "fault processes");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      processes.push_back(readProcess(nodes[i], fmt::format("fault_processes.{}", i), findings_));
    }
    return processes;
  }

  std::vector<Expectation> readExpectations(const Scenario& scenario) {
    std::vector<Expectation> expectations;
    std::vector<std::string> names;
    for (const Strategy& strategy : scenario.strategies) names.push_back(strategy.name);
    const auto nodes = elements("expect", "expectations");
    // Without the list of strategies nothing can be said about their metrics.
    if (!strategies_readable_) {
      for (const auto& spec : baseline::strategies()) {
        if (std::ranges::count(names, spec.name) == 0) names.emplace_back(spec.name);
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      if (node.kind != Node::Kind::kScalar) {
        findings_.add(node.where,
                      fmt::format("an expectation is text like 'wrong_elements == 0', not {}",
                                  describe(node)));
        continue;
      }
      auto expectation = parseExpectation(node.text, names);
      if (!expectation.ok()) {
        findings_.add(node.where, expectation.status().message());
        continue;
      }
      if (findings_.usable({"repeat", "workload.gradient.data"})) {
        const std::string why = whyMeaningless(*expectation, scenario);
        if (!why.empty()) findings_.add(node.where, why);
      }
      expectations.push_back(*std::move(expectation));
    }
    return expectations;
  }

  const Node& root_;
  const std::string& folder_;
  Findings& findings_;
  RecordReader records_;
  bool strategies_readable_ = false;
};

}  // namespace

Scenario interpret(const Node& root, const std::string& folder, Findings& findings) {
  return ScenarioReader(root, folder, findings).read();
}

}  // namespace faultline::scenario

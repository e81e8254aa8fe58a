#include "harness/scenario/language_table.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/command/variables.h"
#include "harness/scenario/expectation.h"
#include "harness/scenario/table_rows.h"
#include "harness/site/kinds/kinds.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

using namespace rows;

constexpr double kMostBlocks = 1000;
constexpr double kSlowestRailRate = 1e6;  // bits per second: less does not carry the control class
constexpr double kFastestRailRate = 100e9;
constexpr double kLargestSeed = 0x1p53 - 1;  // every reader of JSON keeps it exactly
constexpr double kMostGrowth = 1000;
constexpr double kMostAnswers = 60;  // the prober remembers 64 rounds
constexpr double kSmallestChunk = 4
                                  << 10;   // below it headers and system calls are what is measured
constexpr double kLargestChunk = 4 << 20;  // a rail keeps one in a buffer of its own

constexpr std::array<std::string_view, 3> kTelemetryModes{"off", kNullWord, "on"};

std::span<const std::string_view> clusterKindNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const site::Kind* const kind : site::kinds()) all.push_back(kind->name);
    return all;
  }();
  return names;
}

std::string_view clusterKindMeanings() {
  static const std::string text = [] {
    std::string all;
    for (const site::Kind* const kind : site::kinds()) {
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", kind->name, kind->summary);
    }
    return all;
  }();
  return text;
}

const std::array kCommonClusterFields{
    Field{choice("kind", clusterKindNames().front(), clusterKindNames(), clusterKindMeanings())},
    Field{number("nodes", "4", 1, kMostNodes, "nodes")},
    Field{number("ranks_per_node", "1", 1, kMostRanksPerNode,
                 "ranks (processes) on each node; a rank is a process of its own")},
    Field{
        number(
            "rails", "2", 1, kMostRails,
            "NICs of each node, each with a switch of its own. Of a kind that finds them: so many "
            "of those that are there; auto, all that fit, which is the default then; a list of "
            "their names; or a list for each node, {NODE: [names]}"),
        Shape::kRails},
    Field{{"rail_rate",
           Type::kRate,
           "400Mbit",
           "what a rail carries in each direction. Of rails that are there already: as their "
           "drivers say, if nothing is said here",
           {},
           kSlowestRailRate,
           kFastestRailRate}},
    Field{{"congestion_control", Type::kName, "",
           "of TCP, e.g. cubic, where a program in a node chooses none; left out: this machine's "
           "default. Rails of ours choose theirs"}},
};

/// Those of all kinds, and what each adds.
const std::vector<Field>& clusterFields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all(kCommonClusterFields.begin(), kCommonClusterFields.end());
    for (const site::Kind* const kind : site::kinds()) {
      for (const site::Setting& setting : kind->settings) {
        all.push_back({setting.spec, setting.list ? Shape::kList : Shape::kScalar});
      }
    }
    return all;
  }();
  return fields;
}
const Record& clusterTable() {
  static const Record kTable{"The machines and the network between them.", clusterFields()};
  return kTable;
}

constexpr std::array kLimitFields{
    Field{duration("deadline", "60s", kMillisecond,
                   "longest time of one run; a run that is not over by then has failed")},
    Field{duration("give_up", "10s", kMillisecond,
                   "a rank that has not been heard, or to which no rail was up, for so long while "
                   "there was something to do is lost: an error on all ranks")},
    Field{duration("collective_timeout", "10min", kMillisecond,
                   "a collective that is not done so long after its call, though all ranks answer, "
                   "is an error on all ranks that names those that take no part in it")},
    Field{duration("longest_hold_off", "10s", kMillisecond,
                   "a rail that fails again and again is held off longer each time, and so long at "
                   "most; short for scenarios that measure many failures of one rail")},
    Field{duration("hold_off", "50ms", kMillisecond,
                   "a rail that has failed once is not taken back before this")},
    Field{number("hold_off_growth", "10", 1, kMostGrowth,
                 "so many times longer each time, when a rail fails again and again")},
    Field{duration("hold_off_memory", "10s", 0,
                   "a failure within this time of the rail's return makes its hold-off grow")},
    Field{duration("suspect_after", "10ms", kMillisecond,
                   "a rail that makes no progress for so long is tried with probes; up to ten "
                   "times as long where its acknowledgements usually take longer")},
    Field{
        duration("probe_interval", "2500us", kMillisecond, "pause between the probes of a trial")},
    Field{
        duration("return_probe_interval", "10ms", kMillisecond,
                 "pause between the probes of a rail that is down, at first, and when it answers")},
    Field{duration("longest_return_probe_interval", "1s", kMillisecond,
                   "while it does not answer, the pause grows with its outage, and to so long")},
    Field{number("answers_to_return", "3", 1, kMostAnswers,
                 "answers in a row after which a rail that is down counts as healed")},
    Field{duration("idle_probe_interval", "200ms", kMillisecond,
                   "pause between the probes that ask whether a rank of which something is awaited "
                   "is still there")},
    Field{{"chunk",
           Type::kSize,
           "64KiB",
           "what one rail carries at a time: a message is cut into these",
           {},
           kSmallestChunk,
           kLargestChunk}},
    Field{
        duration("window", "2ms", kMillisecond,
                 "a rail has two chunks outstanding and what it carries in so long; what a failed "
                 "rail leaves has to wait for so much on another one")},
    Field{{"tail_budget",
           Type::kSize,
           "512KiB",
           "'balance': so much of each message may be sent twice, when a faster rail is likely to "
           "deliver it sooner; 0B: nothing",
           {},
           0,
           kLargestGradient}},
    Field{duration("connect_timeout", "500ms", kMillisecond,
                   "an attempt to connect a rail, or the introduction of who connects, has failed "
                   "after this")},
    Field{duration("connect", "2s", kMillisecond,
                   "when all ranks are there, rails that do not come up are waited for so long; "
                   "then the job begins without them, if every pair of ranks has one, and uses "
                   "them when they come")},
};
constexpr Record kLimits{"When to stop waiting, how often to ask, and how much at a time.",
                         kLimitFields};

constexpr double kMostDriftRuns = 50;
constexpr std::array<std::string_view, 2> kSwitch{"off", "on"};
constexpr ParameterSpec percent(std::string_view name, std::string_view fallback, double minimum,
                                double maximum, std::string_view meaning) {
  return {name, Type::kPercent, fallback, meaning, {}, minimum, maximum};
}
constexpr std::array kNoiseFields{
    Field{
        percent("void_above", "2%", 0.01, 100,
                "a second row of fault_free may differ by so much in 95 % of its pairs, and equal "
                "runs of the drift check from each other")},
    Field{percent("latency_void_above", "10%", 0.01, 100,
                  "of a server: likewise its median TTFT and TPOT at each rate that fault_free "
                  "keeps up with")},
    Field{percent("drift_above", "5%", 0.01, 100,
                  "equal runs at the end may take so much more or less time than at the "
                  "beginning")},
    Field{number("drift_check", "0", 0, kMostDriftRuns,
                 "fault-free runs that are made before all others, and as many after them, in a "
                 "row of their own (drift_check); of a server all with the same arrivals")},
    Field{choice("across_blocks", "off", kSwitch,
                 "on: hold the runs of fault_free in the first half of the blocks against those in "
                 "the other half, as drift_check does with runs of its own; of no server, each of "
                 "whose blocks has other arrivals")},
    Field{choice("keep_awake", "off", kSwitch,
                 "on: idle processors of this machine do not sleep while runs are made, so that no "
                 "thread waits for one to wake (the kernel's /dev/cpu_dma_latency at 0; takes "
                 "root; not of guests, whose processors are their own)")},
};
constexpr Record kNoise{
    "When the machine was too noisy: a result above these is void, its verdict invalid. And what "
    "makes it less so.",
    kNoiseFields};

/// Made with the first call: what `workload` has is in another file.
std::span<const Field> scenarioFields() {
  static const std::array kFields{
      Field{number("version", "", 1, 1, "version of this language: 1"), Shape::kScalar, true},
      Field{{"name", Type::kName, "", "names the result"}, Shape::kScalar, true},
      Field{labelled("description", "one sentence for the report")},
      Field{labelled("cluster", clusterTable().meaning), Shape::kRecord, false, &clusterTable()},
      Field{labelled("workload", workloadTable().meaning), Shape::kRecord, true, &workloadTable()},
      Field{
          labelled("strategies",
                   "how the job meets the faults, one row of the report each: names, or "
                   "{name: {option: value}}; the option 'as' gives a row another name, so that one "
                   "strategy can have several; 'env' gives the programs of 'command' variables "
                   "in this row"),
          Shape::kStrategies, true},
      Field{labelled("faults", "what is broken, when and for how long"), Shape::kFaults},
      Field{labelled("sequences", "faults that come one after the other"), Shape::kRecords, false,
            &sequenceTable()},
      Field{labelled("fault_processes",
                     "failures and repairs at random: the same seed makes the same faults, on "
                     "elements that do not depend on each other"),
            Shape::kRecords, false, &processTable()},
      Field{labelled("limits", kLimits.meaning), Shape::kRecord, false, &kLimits},
      Field{labelled("noise", kNoise.meaning), Shape::kRecord, false, &kNoise},
      Field{choice("telemetry", "off", kTelemetryModes,
                   "on: the ranks record their transfers and what happens to rails for trace.json; "
                   "null: events are made and thrown away, to measure what making them costs")},
      Field{
          number("io_threads", "0", 0, kMostRails,
                 "threads of each rank that move the payload of its rails, each rail owned by one; "
                 "0: its progress thread does. For rails faster than a core can copy")},
      Field{number("repeat", "1", 1, kMostBlocks,
                   "blocks of runs; each runs every strategy once, so that overheads are compared "
                   "inside a block")},
      Field{number("seed", "1", 0, kLargestSeed, "makes a run repeatable")},
      Field{
          labelled("expect",
                   "what must hold, as 'metric comparison value', like 'hot_repair.failovers.count "
                   ">= 1'; texts also with contains"),
          Shape::kExpectations},
  };
  return kFields;
}

std::string factsOf(const Field& field) {
  const ParameterSpec& spec = field.spec;
  std::string facts;
  switch (field.shape) {
    case Shape::kScalar:
      facts = typeOf(spec);
      break;
    case Shape::kRecord:
      facts = "mapping";
      break;
    case Shape::kCompute:
      facts = "duration or {burn: duration}";
      break;
    case Shape::kCard:
      facts = fmt::format("{}, or a mapping", typeOf(spec));
      break;
    case Shape::kMetrics:
      facts = "mapping of names";
      break;
    case Shape::kTexts:
      facts = "mapping of texts";
      break;
    case Shape::kWords:
      facts = "list of texts";
      break;
    case Shape::kRails:
      facts = fmt::format("{}, auto, a list of names, or a mapping of such lists", typeOf(spec));
      break;
    case Shape::kList:
      facts = fmt::format("{}, or a list", typeOf(spec));
      break;
    default:
      facts = "list";
  }
  if (field.required) facts += ", required";
  if (!spec.defaultText.empty()) facts += fmt::format(", default {}", spec.defaultText);
  if (spec.bounded() && spec.minimum < spec.maximum) {
    facts +=
        fmt::format(", {} to {}", formatBound(spec, spec.minimum), formatBound(spec, spec.maximum));
  }
  return facts;
}

}  // namespace

const Record& scenarioTable() {
  static const Record kScenario{"One experiment.", scenarioFields()};
  return kScenario;
}

std::string describeField(const Field& field, const std::string& path) {
  const std::string name = path + std::string(field.spec.name);
  std::string page =
      fmt::format("{}\n    {}\n", wrapText(fmt::format("{} ({})", name, factsOf(field)), 4),
                  wrapText(field.spec.meaning, 4));
  const Record* inner = field.shape == Shape::kFaults ? &faultTable() : field.record;
  if (inner == nullptr) return page;
  const bool listed = field.shape == Shape::kFaults || field.shape == Shape::kSteps ||
                      field.shape == Shape::kRecords;
  const std::string inside = name + (listed                           ? "[]."
                                     : field.shape == Shape::kMetrics ? ".<name>."
                                                                      : ".");
  for (const Field& part : inner->fields) page += describeField(part, inside);
  return page;
}

std::string describeScenario() {
  constexpr std::size_t kNameColumns = 18;
  constexpr std::size_t kMetricColumns = 31;
  std::string page =
      "A scenario is a YAML file. Keys that are not listed here are mistakes.\n"
      "Values carry their unit: 20ms, 4MiB, 400Mbit, 50%. Counting starts at 0.\n\n";
  for (const Field& field : scenarioTable().fields) page += describeField(field, "");
  page += "\nkinds of faults\n";
  for (const auto& kind : injector::faultKinds()) {
    page += describeRow(kind.name, injector::summaryOf(kind), kNameColumns);
  }
  page += "\nstrategies\n";
  for (const auto& strategy : baseline::strategies()) {
    page += describeRow(strategy.name, strategy.summary, kNameColumns);
  }
  page +=
      "\nvariables of the processes of 'command': FAULTLINE_RANK in the environment is {rank} as "
      "a\nplaceholder, and so on\n" +
      command::describeVariables();
  page += "\nmetrics for 'expect': <strategy>.<metric>, or the metric alone where marked with *\n";
  for (const Metric& metric : metricTable()) {
    page += describeRow(
        fmt::format("{}{}", metric.path, metric.owner == Metric::Owner::kStrategy ? "" : " *"),
        metric.doc, kMetricColumns);
  }
  return page;
}

}  // namespace faultline::scenario

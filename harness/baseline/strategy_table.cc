#include "harness/baseline/strategy_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "base/text.h"
#include "harness/baseline/modelled.h"
#include "harness/baseline/modelled_options.h"

namespace faultline::baseline {
namespace {

constexpr double kHour = 3600;
constexpr double kMillisecond = 0.001;
constexpr double kMostIterations = 1'000'000;

constexpr ParameterSpec kCorrupt{
    kCorruptOneElement, ParameterType::kFlag, "false",
    "changes one element of one result on purpose: for testing the bench, whose check must see it"};

constexpr std::array<std::string_view, 4> kTelemetryWords{kAsTheScenario, "off", "null", "on"};
constexpr ParameterSpec kRecord{
    kTelemetry, ParameterType::kEnum, kAsTheScenario,
    "what the ranks record in runs of this strategy, instead of what the scenario says: to "
    "measure what recording costs",
    kTelemetryWords};

constexpr ParameterSpec kRowName{
    "as", ParameterType::kName, "",
    "another name for the row: runs a strategy a second time, with other options, or with the same "
    "ones. A second fault_free measures the noise"};

constexpr ParameterSpec kRowEnvironment{
    "env", ParameterType::kText, "",
    "variables of the environment that the programs of a workload of kind command have in this "
    "row, besides the workload's own"};

constexpr std::array kCommonOptions{kRecord, kCorrupt};

/// Names that others of the list refer to.
constexpr std::string_view kHotRepair = "hot_repair";
constexpr std::array<std::string_view, 6> kArmable{kHotRepair, "balance",      "r2_allreduce",
                                                   "optcc",    "optcc_server", "auto"};
constexpr std::array kArmedOptions{
    ParameterSpec{kLike, ParameterType::kEnum, kHotRepair,
                  "what is ready for faults: the standing cost of auto is {armed: {like: auto}} "
                  "against fault_free",
                  kArmable},
    kRecord, kCorrupt};

constexpr std::array kFailStopOptions{
    ParameterSpec{
        kWatchdog,
        ParameterType::kDuration,
        "600ms",
        "a collective without progress for so long is hung and the job is killed; must be "
        "shorter than the fault, or nothing ever hangs (stock libraries wait 600 s)",
        {},
        kMillisecond,
        kHour},
    ParameterSpec{kCheckpointEvery,
                  ParameterType::kInteger,
                  "5",
                  "iterations between two checkpoint files; the restart goes on from the last one",
                  {},
                  1,
                  kMostIterations},
    kRecord, kCorrupt};

constexpr std::array kWrittenOptions{
    ParameterSpec{
        kSchedule, ParameterType::kText, "",
        "file of the schedule, relative to the scenario: MSCCL XML, or JSON as 'faultline "
        "schedule show --json --max-ops -1' prints it. It must be right, for as many ranks "
        "as the cluster has and the collective that is measured, and have no more chunks "
        "than a call has elements. The row is called as the file, without its ending"},
    kRecord, kCorrupt};
constexpr ParameterSpec kContentKey{kContent, ParameterType::kText, "",
                                    "the text of the schedule, which is then not read from its "
                                    "file. Results have it, so that their "
                                    "scenario can be run again wherever the file is"};

constexpr double kLongestPatience = 600;
constexpr ParameterSpec kPatienceOption{
    kPatience,
    ParameterType::kDuration,
    "2s",
    "a rank that lives and does not come to the rebuilding within so long is left out, "
    "if the others are more than half of all",
    {},
    kMillisecond,
    kLongestPatience};
constexpr std::array kShrinkOptions{kPatienceOption, kRecord, kCorrupt};

constexpr std::array kExcludeRankOptions{
    ParameterSpec{kWait,
                  ParameterType::kDuration,
                  "10s",
                  "a collective that is not done so long after its call has failed; must be "
                  "shorter than the fault. The default is fault_tolerant_time of AdapCC's "
                  "coordinator (its repository, JoeyYoung/adapcc)",
                  {},
                  kMillisecond,
                  kHour},
    kPatienceOption, kRecord, kCorrupt};

constexpr std::array<std::string_view, 4> kNcclModes{kStock, kPortFailover, kAbortReinit,
                                                     kShrinkMode};
constexpr std::array kNcclOptions{
    ParameterSpec{
        kMode, ParameterType::kEnum, kStock,
        "stock: NCCL as it is by default; port_failover: its own failover between the ports of a "
        "merged NIC, and back (InfiniBand and RoCE only, NCCL 2.29.7 and 2.30.3); abort_reinit: "
        "the program aborts its communicator and makes it anew with all ranks (2.4); shrink: those "
        "that are left make a smaller one of it (2.27.3). For the last two the program must take "
        "part: docs/command.md",
        kNcclModes},
    ParameterSpec{kWait,
                  ParameterType::kDuration,
                  "10s",
                  "of abort_reinit and shrink: the program takes a collective that is not done so "
                  "long after its call for failed, as NCCL (2.27 to 2.30) over sockets does not "
                  "see a port that "
                  "is down. Where nothing else tells it, a shorter fault passes unnoticed, and the "
                  "run is invalid. The default is that of exclude_rank",
                  {},
                  kMillisecond,
                  kHour}};

constexpr std::string_view kCommand = "command";
constexpr std::string_view kTraining = "training";
constexpr std::string_view kInference = "inference";

template <Modelled (*kOfJob)(const Parameters&)>
std::optional<Modelled> ofJob(const ServingCase* /*serving*/, const Parameters& options) {
  return kOfJob(options);
}

template <Modelled (*kOfServer)(const ServingCase&, const Parameters&)>
std::optional<Modelled> ofServer(const ServingCase* serving, const Parameters& options) {
  if (serving == nullptr) return std::nullopt;
  return kOfServer(*serving, options);
}

constexpr std::array kStrategies{
    StrategySpec{
        .name = kReferenceRow,
        .summary = "Data is striped over all rails; resilience is off; no fault.",
        .measures = "the throughput v0 that every overhead is measured against",
        .meetsFaults = false,
        .options = kCommonOptions,
        .reference = true,
        .suitsForeign = true,
    },
    StrategySpec{
        .name = "armed",
        .summary =
            "Resilience is on as in hot_repair, or in what 'like' names, and no fault happens.",
        .measures = "the standing cost of being resilient: armed against fault_free",
        .meetsFaults = false,
        .options = kArmedOptions,
        .resilient = true,
        .suitsForeign = true,
    },
    StrategySpec{
        .name = "fail_stop",
        .summary = "As a stock library: no failover. The job hangs until a watchdog kills it, "
                   "waits until the port is back, and restarts from the last checkpoint.",
        .measures =
            "what the fault costs without resilience: hang, isolation, loading and lost work",
        .options = kFailStopOptions,
        .restarts = true,
        .hangOption = kWatchdog,
    },
    StrategySpec{
        .name = kHotRepair,
        .summary = "Chunks of a failed rail move to its partner rail; no byte is lost, the job "
                   "goes on, and the rail is taken back when it has healed.",
        .measures = "what the fault costs with lossless failover",
        .options = kCommonOptions,
        .resilient = true,
    },
    StrategySpec{
        .name = "balance",
        .summary = "Each rail takes as much as it carries, and the last chunks of a slow one go "
                   "again over a faster one; chunks of a failed rail go to all others.",
        .measures = "what a slow or failed rail costs when the others share its load",
        .options = kCommonOptions,
        .resilient = true,
        .sharesLoad = true,
    },
    StrategySpec{
        .name = "shrink",
        .summary = "As hot_repair; and when a process dies, the others rebuild the communicator "
                   "without it and go on as fewer ranks.",
        .measures = "what the death of a process costs without a restart: time, and its share of "
                    "the work from then on",
        .options = kShrinkOptions,
        .resilient = true,
        .losesRanks = true,
    },
    StrategySpec{
        .name = "exclude_rank",
        .summary = "As AdapCC: no failover. The job hangs until the wait is over; then the ranks "
                   "behind a port that is down leave it, and the others rebuild the communicator, "
                   "do the interrupted iteration again, and go on as fewer ranks. Once.",
        .measures = "what a lost NIC costs those who can only do without its ranks: the wait, and "
                    "their share of the samples from then on",
        .options = kExcludeRankOptions,
        .losesRanks = true,
        .leavesRanksOut = true,
        .hangOption = kWait,
    },
    StrategySpec{
        .name = "r2_allreduce",
        .summary = "As balance, with R2CCL's AllReduce, planned for what is left of the ports: a "
                   "ring of all ranks on a part of the data, one of the fast ranks on the rest.",
        .measures = "what R2CCL's AllReduce wins of what balance leaves",
        .options = kCommonOptions,
        .resilient = true,
        .sharesLoad = true,
        .plannedBy = "r2_allreduce",
    },
    StrategySpec{
        .name = "optcc",
        .summary = "As balance, with OptCC's AllReduce, planned for what is left of the ports: "
                   "each rank reduces as much as its port has room for. Where all ports are "
                   "equally fast a ring, if that is cheaper by the planner's model.",
        .measures = "how near to the best possible an AllReduce comes with what is left",
        .options = kCommonOptions,
        .resilient = true,
        .sharesLoad = true,
        .plannedBy = "optcc",
    },
    StrategySpec{
        .name = "optcc_server",
        .summary = "As optcc, among nodes: ranks of a node, which share its ports, reduce among "
                   "themselves first, so that data cross its ports once. With one rank on each "
                   "node, as optcc.",
        .measures = "how near to the best possible servers of several ranks come with what is left",
        .options = kCommonOptions,
        .resilient = true,
        .sharesLoad = true,
        .plannedBy = "optcc_server",
    },
    StrategySpec{
        .name = "auto",
        .summary = "As balance, with the algorithm and the segments of AllReduce that the planner "
                   "finds cheapest for each size with what is left of the ports.",
        .measures = "whether the planner picks the right one",
        .options = kCommonOptions,
        .resilient = true,
        .sharesLoad = true,
        .plannedBy = kAnyAlgorithm,
    },
    StrategySpec{
        .name = "planned",
        .summary = "As balance, with a schedule that somebody wrote down: calls of its collective "
                   "follow the file, and whatever happens to the ports it stays the same.",
        .measures = "what a schedule of one's own is worth, whole and with what a fault leaves",
        .options = kWrittenOptions,
        .resilient = true,
        .sharesLoad = true,
        .written = true,
    },
    StrategySpec{
        .name = "unprotected",
        .summary = "A program that is not ours meets the faults as it is, or with what 'env' makes "
                   "of it; only for a workload of kind command.",
        .measures = "what the faults cost such a program",
        .workload = kCommand,
        .suitsForeign = true,
    },
    StrategySpec{
        .name = "nccl",
        .summary = "A program that uses NCCL meets the faults, with the variables that its 'mode' "
                   "needs; only for a workload of kind command.",
        .measures = "what the faults cost with NCCL alone, with its own failover, or with a "
                    "program that makes its communicator anew",
        .options = kNcclOptions,
        .workload = kCommand,
        .suitsForeign = true,
        .setsUpNccl = true,
    },
    StrategySpec{
        .name = "restart_at_scale",
        .summary = "Modelled, not executed: a job of a large cluster is restarted from a "
                   "checkpoint after each fault, with phases as they are published.",
        .measures = "what restarts cost where detecting, replacing and loading take minutes",
        .meetsFaults = false,
        .options = kRestartAtScaleOptions,
        .model = ofJob<restartAtScale>,
        .workload = kTraining,
    },
    StrategySpec{
        .name = "restart_server",
        .summary = "Modelled, not executed: the server is killed and started again, and all "
                   "requests under way are done again.",
        .measures = "what a fault costs requests without resilience",
        .meetsFaults = false,
        .options = kRestartServerOptions,
        .model = ofServer<restartServer>,
        .workload = kInference,
    },
    StrategySpec{
        .name = "reroute_requests",
        .summary = "Modelled, not executed: requests under way go to other replicas of the model, "
                   "which do their prompts again and share the load until there is another.",
        .measures = "what a fault costs requests when there are other servers",
        .meetsFaults = false,
        .options = kRerouteRequestsOptions,
        .model = ofServer<rerouteRequests>,
        .workload = kInference,
    },
    StrategySpec{
        .name = "kv_replicate",
        .summary =
            "Modelled, not executed: as DejaVu. Keys and values are streamed to a neighbour; after "
            "a restart of the worker they come back, and generation goes on.",
        .measures = "what a fault costs requests with replicated keys and values",
        .meetsFaults = false,
        .options = kKvReplicateOptions,
        .model = ofServer<kvReplicate>,
        .workload = kInference,
    },
};

/// The words of kLike stand above the table, which refers to them, and each is a row of it.
static_assert(std::ranges::all_of(kArmable, [](std::string_view name) {
  return std::ranges::find(kStrategies, name, &StrategySpec::name) != kStrategies.end();
}));

/// Keys beside the options have no default, and may be left out.
std::string describeKey(const ParameterSpec& spec, std::string_view type) {
  return describeRow(spec.name, fmt::format("{}, optional", type)) + describeRow("", spec.meaning);
}

}  // namespace

std::span<const StrategySpec> strategies() { return kStrategies; }

const StrategySpec* findStrategy(std::string_view name) {
  for (const StrategySpec& strategy : kStrategies) {
    if (strategy.name == name) return &strategy;
  }
  return nullptr;
}

const ParameterSpec& rowNameSpec() { return kRowName; }
const ParameterSpec& rowEnvironmentSpec() { return kRowEnvironment; }
const ParameterSpec& contentSpec() { return kContentKey; }

const StrategySpec& firstStrategy(const std::function<bool(const StrategySpec&)>& holds) {
  return *std::ranges::find_if(kStrategies, holds);
}

const StrategySpec& usualStrategy(bool foreign) {
  return firstStrategy([&](const StrategySpec& strategy) {
    return strategy.meetsFaults && (foreign ? strategy.suitsForeign : strategy.resilient);
  });
}

std::string namesOf(const std::function<bool(const StrategySpec&)>& holds) {
  std::vector<std::string_view> names;
  for (const StrategySpec& strategy : kStrategies) {
    if (holds(strategy)) names.push_back(strategy.name);
  }
  if (names.size() < 2) return names.empty() ? "" : std::string(names.front());
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", join(names, ", "), last);
}

const StrategySpec& carriedOut(const StrategySpec& strategy, const Parameters& options) {
  if (!options.has(kLike)) return strategy;
  const StrategySpec* const like = findStrategy(options.get<std::string>(kLike));
  assert(like != nullptr);  // one of kArmable
  return *like;
}

bool rebuildsItself(std::string_view ncclMode) {
  return ncclMode == kAbortReinit || ncclMode == kShrinkMode;
}

bool isModelled(std::string_view strategy) {
  const StrategySpec* const spec = findStrategy(strategy);
  return spec != nullptr && spec->modelled();
}

std::string describeStrategy(const StrategySpec& strategy) {
  return fmt::format("{}\n\n", strategy.name) + describeRow("does", strategy.summary) +
         describeRow("measures", strategy.measures) +
         describeRow("faults", strategy.modelled()    ? "as many as its model says"
                               : strategy.meetsFaults ? "the scenario's"
                                                      : "none") +
         (strategy.workload.empty() ? "" : describeRow("workload", strategy.workload)) +
         "\noptions\n" + (strategy.options.empty() ? "" : describeParameters(strategy.options)) +
         (strategy.written ? describeKey(kContentKey, "text") : "") +
         describeKey(kRowName, "name") +
         (strategy.suitsForeign ? describeKey(kRowEnvironment, "mapping of texts") : "");
}

}  // namespace faultline::baseline

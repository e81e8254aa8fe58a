#include "harness/baseline/strategy_table.h"

#include <array>

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

constexpr std::array<std::string_view, 6> kArmable{kHotRepair, kBalance,     kR2AllReduce,
                                                   kOptcc,     kOptccServer, kAuto};
constexpr std::array kArmedOptions{
    ParameterSpec{kLike, ParameterType::kEnum, kHotRepair,
                  "what is ready for faults: the standing cost of auto is {armed: {like: auto}} "
                  "against fault_free",
                  kArmable},
    kRecord, kCorrupt};

constexpr std::array kFailStopOptions{
    ParameterSpec{
        "watchdog",
        ParameterType::kDuration,
        "600ms",
        "a collective without progress for so long is hung and the job is killed; must be "
        "shorter than the fault, or nothing ever hangs (stock libraries wait 600 s)",
        {},
        kMillisecond,
        kHour},
    ParameterSpec{"checkpoint_every",
                  ParameterType::kInteger,
                  "5",
                  "iterations between two checkpoint files; the restart goes on from the last one",
                  {},
                  1,
                  kMostIterations},
    kRecord, kCorrupt};

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

constexpr std::string_view kNoPlan;
constexpr std::string_view kCommand = "command";
constexpr std::string_view kTraining = "training";
constexpr std::string_view kInference = "inference";

constexpr std::array kStrategies{
    StrategySpec{kFaultFree, "Data is striped over all rails; resilience is off; no fault.",
                 "the throughput v0 that every overhead is measured against", false,
                 kCommonOptions},
    StrategySpec{
        kArmed, "Resilience is on as in hot_repair, or in what 'like' names, and no fault happens.",
        "the standing cost of being resilient: armed against fault_free", false, kArmedOptions},
    StrategySpec{kFailStop,
                 "As a stock library: no failover. The job hangs until a watchdog kills it, waits "
                 "until the port is back, and restarts from the last checkpoint.",
                 "what the fault costs without resilience: hang, isolation, loading and lost work",
                 true, kFailStopOptions},
    StrategySpec{kHotRepair,
                 "Chunks of a failed rail move to its partner rail; no byte is lost, the job goes "
                 "on, and the rail is taken back when it has healed.",
                 "what the fault costs with lossless failover", true, kCommonOptions},
    StrategySpec{
        kBalance,
        "Each rail takes as much as it carries, and the last chunks of a slow one go again "
        "over a faster one; chunks of a failed rail go to all others.",
        "what a slow or failed rail costs when the others share its load", true, kCommonOptions},
    StrategySpec{kShrink,
                 "As hot_repair; and when a process dies, the others rebuild the communicator "
                 "without it and go on as fewer ranks.",
                 "what the death of a process costs without a restart: time, and its share of the "
                 "work from then on",
                 true, kShrinkOptions},
    StrategySpec{kExcludeRank,
                 "As AdapCC: no failover. The job hangs until the wait is over; then the ranks "
                 "behind a port that is down leave it, and the others rebuild the communicator, do "
                 "the interrupted iteration again, and go on as fewer ranks. Once.",
                 "what a lost NIC costs those who can only do without its ranks: the wait, and "
                 "their share of the samples from then on",
                 true, kExcludeRankOptions},
    StrategySpec{
        kR2AllReduce,
        "As balance, with R2CCL's AllReduce, planned for what is left of the ports: a ring of all "
        "ranks on a part of the data, one of the fast ranks on the rest.",
        "what R2CCL's AllReduce wins of what balance leaves", true, kCommonOptions, "r2_allreduce"},
    StrategySpec{
        kOptcc,
        "As balance, with OptCC's AllReduce, planned for what is left of the ports: each rank "
        "reduces as much as its port has room for. Where all ports are equally fast a ring, if "
        "that "
        "is cheaper by the planner's model.",
        "how near to the best possible an AllReduce comes with what is left", true, kCommonOptions,
        "optcc"},
    StrategySpec{
        kOptccServer,
        "As optcc, among nodes: ranks of a node, which share its ports, reduce among themselves "
        "first, so that data cross its ports once. With one rank on each node, as optcc.",
        "how near to the best possible servers of several ranks come with what is left", true,
        kCommonOptions, "optcc_server"},
    StrategySpec{
        kAuto,
        "As balance, with the algorithm and the segments of AllReduce that the planner finds "
        "cheapest for each size with what is left of the ports.",
        "whether the planner picks the right one", true, kCommonOptions, kAnyAlgorithm},
    StrategySpec{
        kUnprotected,
        "A program that is not ours meets the faults as it is, or with what 'env' makes of "
        "it; only for a workload of kind command.",
        "what the faults cost such a program",
        true,
        {}},
    StrategySpec{
        kNccl,
        "A program that uses NCCL meets the faults, with the variables that its 'mode' "
        "needs; only for a workload of kind command.",
        "what the faults cost with NCCL alone, with its own failover, or with a program that "
        "makes its communicator anew",
        true, kNcclOptions, kNoPlan, false, kCommand},
    StrategySpec{kRestartAtScale,
                 "Modelled, not executed: a job of a large cluster is restarted from a checkpoint "
                 "after each fault, with phases as they are published.",
                 "what restarts cost where detecting, replacing and loading take minutes", false,
                 kRestartAtScaleOptions, kNoPlan, true, kTraining},
    StrategySpec{kRestartServer,
                 "Modelled, not executed: the server is killed and started again, and all requests "
                 "under way are done again.",
                 "what a fault costs requests without resilience", false, kRestartServerOptions,
                 kNoPlan, true, kInference},
    StrategySpec{kRerouteRequests,
                 "Modelled, not executed: requests under way go to other replicas of the model, "
                 "which do their prompts again and share the load until there is another.",
                 "what a fault costs requests when there are other servers", false,
                 kRerouteRequestsOptions, kNoPlan, true, kInference},
    StrategySpec{kKvReplicate,
                 "Modelled, not executed: as DejaVu. Keys and values are streamed to a neighbour; "
                 "after a restart of the worker they come back, and generation goes on.",
                 "what a fault costs requests with replicated keys and values", false,
                 kKvReplicateOptions, kNoPlan, true, kInference},
};

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

bool losesRanks(std::string_view strategy) {
  return strategy == kShrink || strategy == kExcludeRank;
}

bool rebuildsItself(std::string_view ncclMode) {
  return ncclMode == kAbortReinit || ncclMode == kShrinkMode;
}

bool isModelled(std::string_view strategy) {
  const StrategySpec* const spec = findStrategy(strategy);
  return spec != nullptr && spec->modelled;
}

bool suitsForeignPrograms(std::string_view strategy) {
  return strategy == kFaultFree || strategy == kArmed || strategy == kUnprotected ||
         strategy == kNccl;
}

std::string describeStrategy(const StrategySpec& strategy) {
  return fmt::format("{}\n\n", strategy.name) + describeRow("does", strategy.summary) +
         describeRow("measures", strategy.measures) +
         describeRow("faults", strategy.modelled      ? "as many as its model says"
                               : strategy.meetsFaults ? "the scenario's"
                                                      : "none") +
         (strategy.workload.empty() ? "" : describeRow("workload", strategy.workload)) +
         "\noptions\n" + (strategy.options.empty() ? "" : describeParameters(strategy.options)) +
         describeKey(kRowName, "name") +
         (suitsForeignPrograms(strategy.name) ? describeKey(kRowEnvironment, "mapping of texts")
                                              : "");
}

}  // namespace faultline::baseline

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/parameter.h"
#include "base/units.h"
#include "harness/command/command.h"
#include "harness/inference/serving.h"
#include "harness/model/training_plan.h"
#include "harness/scenario/expectation.h"
#include "harness/scenario/own_section.h"
#include "harness/scenario/sweep.h"
#include "harness/site/kinds/kinds.h"
#include "harness/stats/drift.h"
#include "harness/stats/overhead.h"
#include "injector/fault_kind.h"
#include "resilient_ccl/reduction/data_type.h"

/// A scenario as plain data, checked and with defaults filled in. `reader.h` makes it from YAML,
/// `json.h` writes it into results. Counting starts at 0 for nodes, rails and iterations.
namespace faultline::scenario {

struct Cluster {
  const site::Kind* kind = site::kinds().front();
  int nodes = 4;
  int ranksPerNode = 1;
  int rails = 2;
  BitsPerSecond railRate = 400'000'000;  ///< full duplex, at both ends of every rail
  std::string congestionControl = {};    ///< of the nodes' TCP; empty: the machine's default
  site::RailChoice railChoice = {};      ///< of a kind that finds its rails
  site::Settings settings = {};          ///< of the keys that its kind adds

  int ranks() const { return nodes * ranksPerNode; }
  bool operator==(const Cluster&) const = default;
};

/// Compute phase of an iteration.
struct Compute {
  Duration duration = 20ms;
  /// False: a timed wait, as a GPU would be busy. True: the CPU really works for that time.
  bool burn = false;
  bool operator==(const Compute&) const = default;
};

using reduction::DataType;
enum class DataKind {
  kIntegers,  ///< small exact integers: every element of every result is compared
  kRandom,    ///< full-mantissa values from the seed: digests are compared with fault_free
};

/// What one AllReduce per iteration reduces.
struct Gradient {
  Bytes size = 4 << 20;  ///< per rank and iteration; a multiple of the element size
  int buckets = 4;       ///< reduced one after the other while later compute still runs
  DataType dtype = DataType::kF32;
  DataKind data = DataKind::kIntegers;
  bool operator==(const Gradient&) const = default;
};

struct WorkloadKind;
/// Of a scenario that says none.
const WorkloadKind* usualWorkloadKind();

struct Workload {
  const WorkloadKind* kind = usualWorkloadKind();  ///< workload_kind.h
  /// Of `collective`: calls of each cell of the sweep; every call is an iteration.
  int iterations = 60;
  /// Run before t = 0 (of each cell); the measure of a normal iteration for `During::progress`.
  int warmupIterations = 5;
  /// The run ends with the iteration in which this time is over, also when some are left.
  std::optional<Duration> time;
  /// Of `training` that follows from a model; otherwise it has only `compute` and `gradient`.
  std::optional<model::Training> model;
  /// Of `inference`, of `model`: only its model, device, tensor, pipeline and scale say something.
  /// `iterations` are the requests.
  std::optional<inference::Serving> serving;
  /// Of `training`; with a model what the slowest stage computes, and the gradient of one of its
  /// ranks, both after `model->scale`.
  Compute compute;
  Gradient gradient;
  Sweep collective;  ///< of `collective`
  /// Of `command`, for which none of the other members means anything.
  command::Command command;
  OwnSection own;  ///< of kinds whose values nobody else has to know
  bool operator==(const Workload&) const = default;
};

/// A row of the report: how the job meets the faults. Names and options: baseline/strategy_table.h.
struct Strategy {
  std::string name;    ///< of its row, unique: that of `as`, or of what it does
  Parameters options;  ///< with defaults filled in
  std::string does{};  ///< what a row with a name of its own does; empty: what it is called
  /// Variables that the programs of a `command` have in this row, besides the workload's.
  std::map<std::string, std::string> environment{};
  const std::string& kind() const { return does.empty() ? name : does; }
  bool operator==(const Strategy&) const = default;
};

/// Which part of a node a fault acts on.
enum class Part {
  kRail,        ///< the link of one of its rails
  kRailGroup,   ///< of several nodes, the links of one rail, at the same moment
  kManagement,  ///< its link to the management network
  kProcesses,   ///< what runs on it
};

struct Target {
  int node = 0;
  int rail = 0;  ///< of Part::kRail and kRailGroup
  Part part = Part::kRail;
  std::vector<int> nodes{};   ///< of Part::kRailGroup, instead of `node`
  std::optional<int> peer{};  ///< of Part::kRail: not the link, but the path to this node
  /// Of Part::kProcesses: only this rank. `node` is its node in the list of all faults
  /// (fault_list.h), and says nothing before.
  std::optional<int> rank{};
  bool operator==(const Target&) const = default;
};

/// At a time after t = 0 (all ranks have passed the start barrier).
struct At {
  Duration time{};
  bool operator==(const At&) const = default;
};

/// Before the ranks are started. It lasts until so long after t = 0 as its duration says.
struct BeforeStart {
  bool operator==(const BeforeStart&) const = default;
};

/// In the middle of the communication of an iteration, by bytes of the target node's rails.
struct During {
  int iteration = 0;
  double progress = 0.5;  ///< strictly between 0 and 1
  bool operator==(const During&) const = default;
};

/// So long after a moment in the life of another fault; of strikes that are repeated, of the strike
/// with the same number.
struct After {
  enum class Mark {
    kBegin,
    kEnd,
    kRecovery,  ///< an iteration that began after it is over: the job goes on
  };
  Duration delay{};
  Mark mark = Mark::kEnd;
  int fault = 0;  ///< its index in the list of all faults (fault_list.h)
  bool operator==(const After&) const = default;
};

/// At several moments after t = 0, each for a time of its own: what `FaultProcess` is expanded
/// into.
struct Moments {
  struct Moment {
    Duration time{};
    Duration duration{};
    bool operator==(const Moment&) const = default;
  };
  std::vector<Moment> list;  ///< in the order of time
  bool operator==(const Moments&) const = default;
};

struct Fault {
  std::string kind;                      ///< of injector/fault_kind.h
  injector::FaultParameters parameters;  ///< the kind's own, with defaults filled in
  std::optional<Target> target;          ///< absent only for kinds that need none
  std::variant<At, During, Moments, BeforeStart, After> trigger;
  std::optional<Duration> duration;  ///< empty: `until: end` of the run; of Moments the longest
  int times = 1;                     ///< how often it strikes in one run
  Duration every{};                  ///< from one beginning to the next; with times > 1
  /// Instead of `every`: every strike but the first comes after the strike before it of that fault.
  std::optional<After> again{};
  /// Of a link of a rail group: the place of the group's first in the list of all faults.
  std::optional<int> group{};

  /// How long the strike of that number (from 0) lasts; empty: until the end of the run.
  std::optional<Duration> durationOf(std::size_t strike) const {
    const Moments* const moments = std::get_if<Moments>(&trigger);
    return moments == nullptr ? duration : moments->list[strike].duration;
  }
  bool operator==(const Fault&) const = default;
};

/// Faults that come one after the other: the first has a trigger of its own, each of the others
/// comes After the one before it.
struct Sequence {
  std::vector<Fault> faults;  ///< After::fault is not set yet: fault_list.h knows the places
  int repeat = 1;
  Duration pause{};  ///< from the end of the last to the begin of the first, with repeat > 1
  bool operator==(const Sequence&) const = default;
};

/// Times at random with a known mean (lifetime.h).
struct Lifetime {
  enum class Kind { kExponential, kWeibull, kLognormal, kConstant };
  Duration mean{};
  Kind kind = Kind::kExponential;
  double shape = 1;  ///< of Weibull
  double sigma = 1;  ///< of lognormal: standard deviation of the logarithm
  bool operator==(const Lifetime&) const = default;
};

/// Elements that fail and are repaired, at random from the scenario's seed; fault_process.h makes
/// the list of their faults.
struct FaultProcess {
  enum class Element {
    kNic,   ///< the link of one rail of one node
    kRail,  ///< a switch: the links of one rail at all `nodes`
  };
  struct Kind {
    std::string name;
    injector::FaultParameters parameters;
    int weight = 1;  ///< relative to that of the others
    bool operator==(const Kind&) const = default;
  };
  std::vector<Kind> kinds;
  Element per = Element::kNic;
  Lifetime failures;         ///< of each element, from a repair to the next failure
  Lifetime repairs;          ///< from a failure to its repair
  double accelerate = 1;     ///< both are so many times shorter here
  std::vector<int> nodes{};  ///< that have it; empty: all
  std::vector<int> rails{};  ///< likewise
  int atMost = 0;            ///< of its faults at a time; 0: no limit
  int spareRails = 1;        ///< so many rails are whole at every moment, at all nodes
  Duration rest = 500ms;  ///< a rail (at all nodes), or a node's processes, is spared for so long
  Duration shortest = 100ms;  ///< a fault lasts at least so long, or nobody could prove it
  Duration length{};          ///< of the time, from t = 0, in which faults strike
  bool operator==(const FaultProcess&) const = default;
};

/// Budgets, intervals and sizes of the communication under test. `eachLimit` knows all of them.
struct Limits {
  Duration deadline = 60s;  ///< of one run; a run that is not over by then has failed
  Duration giveUp = 10s;    ///< a collective in which nothing moves for so long returns an error
  Duration collectiveTimeout = 10min;  ///< of a collective, from its call on
  /// A rail that fails again and again is kept out of use for this long at most.
  Duration longestHoldOff = 10s;
  Duration holdOff = 50ms;              ///< a rail that failed once is kept out of use for so long
  int holdOffGrowth = 10;               ///< and so many times longer when it fails again
  Duration holdOffMemory = 10s;         ///< within this time of its return
  Duration suspectAfter = 10ms;         ///< a rail without progress is tried after so long
  Duration probeInterval = 2500us;      ///< between the probes of a trial
  Duration returnProbeInterval = 10ms;  ///< between the probes of a rail that is down, at first
  Duration longestReturnProbeInterval = 1s;  ///< after a long outage
  int answersToReturn = 3;                   ///< of these probes, in a row, before it is taken back
  Duration idleProbeInterval = 200ms;        ///< between probes that ask whether the peer is there
  Bytes chunk = 64 << 10;                    ///< a message is cut into these
  Duration window = 2ms;                     ///< outstanding on a rail, and two chunks
  Bytes tailBudget = 512 << 10;              ///< of each message, that may be sent twice
  Duration connectTimeout = 500ms;           ///< of one attempt to connect a rail, at either end
  Duration connect = 2s;  ///< after it the job begins without the rails that are missing
  bool operator==(const Limits&) const = default;
};

/// Calls `visit(name, value)` for each, by its name in a scenario; in the order of results.
template <typename LimitsOrConst, typename Visit>
void eachLimit(LimitsOrConst& limits, const Visit& visit) {
  visit("deadline", limits.deadline);
  visit("give_up", limits.giveUp);
  visit("collective_timeout", limits.collectiveTimeout);
  visit("longest_hold_off", limits.longestHoldOff);
  visit("hold_off", limits.holdOff);
  visit("hold_off_growth", limits.holdOffGrowth);
  visit("hold_off_memory", limits.holdOffMemory);
  visit("suspect_after", limits.suspectAfter);
  visit("probe_interval", limits.probeInterval);
  visit("return_probe_interval", limits.returnProbeInterval);
  visit("longest_return_probe_interval", limits.longestReturnProbeInterval);
  visit("answers_to_return", limits.answersToReturn);
  visit("idle_probe_interval", limits.idleProbeInterval);
  visit("chunk", limits.chunk);
  visit("window", limits.window);
  visit("tail_budget", limits.tailBudget);
  visit("connect_timeout", limits.connectTimeout);
  visit("connect", limits.connect);
}

/// When a machine was too noisy for speeds to mean anything, and what is done to find out.
struct NoiseLimits {
  double bandPercent = stats::kMaxBandPercent;  ///< equal runs beside each other differ by less
  /// The same of the median TTFT and TPOT of a rate that fault_free keeps up with.
  double latencyPercent = stats::kMaxLatencyBandPercent;
  double driftPercent = stats::kMaxDriftPercent;  ///< equal runs at the end and at the beginning
  int driftRuns = 0;    ///< fault-free runs before all others, and as many after them
  Strategy driftRow{};  ///< of those, with driftRuns > 0: fault_free with another name
  /// Instead of such runs: those of fault_free in the first half of the blocks, and in the other.
  bool acrossBlocks = false;
  bool keepAwake = false;  ///< idle processors do not sleep while runs are made (run/keep_awake.h)
  /// With acrossBlocks: two runs on each side, so that their difference can be seen.
  static constexpr int kMinBlocksAcross = 4;
  /// Of driftRuns: one on each side shows a drift, but not what equal runs differ by.
  static constexpr int kMinDriftRunsForSpread = 2;
  static constexpr std::string_view kDriftRow = "drift_check";
  bool operator==(const NoiseLimits&) const = default;
};

/// What the ranks record of their transfers and rails (resilient_ccl/telemetry).
enum class TelemetryMode {
  kOff,   ///< nothing
  kNull,  ///< events are made and thrown away: what making them costs
  kOn,    ///< events are kept, and shown in trace.json
};

/// Of a word that the table allows: off, null, on.
TelemetryMode telemetryMode(std::string_view word);

struct Scenario {
  int version = 1;
  std::string name;
  std::string description;
  Cluster cluster;
  Workload workload;
  std::vector<Strategy> strategies;
  std::vector<Fault> faults;  ///< those that are written down one by one; fault_list.h has all
  std::vector<Sequence> sequences;
  std::vector<FaultProcess> processes;
  Limits limits;
  NoiseLimits noise;
  TelemetryMode telemetry = TelemetryMode::kOff;
  int ioThreads = 0;  ///< of each rank, for the payload of its rails; 0: its progress thread
  int repeat = 1;     ///< blocks; each runs every strategy once
  std::uint64_t seed = 1;
  std::vector<Expectation> expect;

  bool hasFaults() const { return !faults.empty() || !sequences.empty() || !processes.empty(); }
  /// The strategy of that name, or null.
  const Strategy* find(const std::string& strategy) const {
    for (const Strategy& candidate : strategies) {
      if (candidate.name == strategy) return &candidate;
    }
    return nullptr;
  }
  /// The first other row that runs fault_free with the same options: in every block a pair of equal
  /// runs (A/A), which differ by noise alone. Null when there is none.
  const Strategy* secondFaultFree() const;
  /// What the ranks record under this strategy: its own option, or what the scenario says.
  TelemetryMode telemetryOf(const Strategy& strategy) const;
  bool operator==(const Scenario&) const = default;
};

}  // namespace faultline::scenario

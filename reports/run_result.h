#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/run_events.h"

/// One run of a strategy: `runs[]` of result.json. A part of the result model (result.h, which has
/// the units).
namespace faultline::reports {

/// JSON that keeps the order of its keys, so that two results can be compared line by line.
using Json = nlohmann::ordered_json;

enum class Arm { kPlain, kArmed, kFaulted };
enum class RunStatus { kOk, kFailed, kHung, kInvalid };

/// A number with the unit people read it in, e.g. {12.4, "iterations/s"}.
struct Quantity {
  double value = 0;
  std::string unit;
};

/// One iteration of the workload, as the slowest rank saw it. One that was interrupted, because the
/// job hung, died or lost ranks, and was done again lasts from its first begin to its final end.
struct Iteration {
  int index = 0;
  double start_ms = 0;
  double ms = 0;
  int attempts = 1;  ///< times that the job went at it; each but the last was interrupted
  /// How long computing stood still for communication, mean over the ranks; null: not known.
  std::optional<double> exposed_ms{};
};

struct Interval {
  double lo = 0;
  double hi = 0;
};

/// Extra time per unit of work, v0 / v - 1, in percent: per block, then the median of the blocks.
struct Overhead {
  double median = 0;
  std::optional<Interval> ci95{};  ///< null below 6 blocks
  /// Against `ScenarioResult::noise`; null without it. What the overhead is at most: the upper end
  /// of the interval, and never less than the noise of a median.
  std::optional<double> at_most{};
  std::optional<bool> distinguishable{};  ///< it is more than noise
  int n = 0;  ///< blocks that it is the median of; 0 where the row itself says so
};

/// A distribution. p95 is null below 60 samples and p99 below 300.
struct Percentiles {
  static constexpr int kSamplesForP95 = 60;
  static constexpr int kSamplesForP99 = 300;

  std::optional<double> p50;
  std::optional<double> p95;
  std::optional<double> p99;
  std::optional<double> max;
  int n = 0;
};

/// What became of a job after its last fault was taken back (docs/report.md has the definitions).
struct AfterFault {
  std::string counted;     ///< as what: "iterations", "calls", "requests" or "rail_bytes"
  double reverted_ms = 0;  ///< the last fault was taken back
  double watched_ms = 0;   ///< from then until the end of the work; of a run that failed, its end
  double after_pct = 0;    ///< as Run::after_pct
  /// As Run::back_to_95_pct_ms; null: it was not, for as long as it was watched.
  std::optional<double> back_ms{};
};

/// Of the blocks of a strategy: Run::after_pct.
struct AfterSpread {
  double median = 0;
  double min = 0;
  int n = 0;  ///< runs that have it
};

/// Likewise Run::back_to_95_pct_ms.
struct BackSpread {
  std::optional<double> median{};  ///< null: half of the runs or more were not back
  std::optional<double> max{};     ///< null: one was not
  int n = 0;                       ///< runs that were watched, those that were not back included
  int never = 0;                   ///< of them, those
  int ended = 0;                   ///< of those, runs that failed or hung for good
  std::optional<double>
      watched_ms{};  ///< the shortest time for which one of the others was watched
  /// Where it is null because of the others: it is at least this. null: it is infinite.
  std::optional<double> median_at_least{};
  std::optional<double> max_at_least{};
};

/// What became of one request (workload `inference`).
struct ServedRequest {
  int id = 0;
  int rate = 0;  ///< index into Run::rates
  int prompt = 0;
  int output = 0;
  std::string fate{};  ///< "finished" within the objectives, "late" beyond them, "lost"
  int begun = 0;       ///< times; more than once: redone after a restart
  std::optional<double> arrival_ms{};  ///< null: its rate had not begun when the run ended
  std::optional<double> ttft_ms{};     ///< from arrival to its first token
  std::optional<double> tpot_ms{};     ///< mean time of each further token
  std::optional<double> e2e_ms{};      ///< from arrival to its last token
};

/// All requests of one rate: finished + late + lost are all of them; redone ones are among them.
struct RateRow {
  double qps = 0;  ///< requests per second that were offered
  int requests = 0;
  int finished = 0;
  int late = 0;
  int lost = 0;
  int redone = 0;
  /// Requests per second that were finished within the objectives, from the first arrival to the
  /// last token of a run; over all runs in the summary. What was served, whatever was offered: of a
  /// rate that is not kept up with it is the server's capacity, and at the best `qps`.
  double goodput = 0;
  /// Only in the summary, and only of a burst: the arrivals of this rate are over before a few
  /// requests could follow each other, so that latencies and goodput are of a queue that drains.
  /// `requests` from which on they would last long enough.
  std::optional<int> burst_below_requests{};
  Percentiles ttft_ms{};
  Percentiles tpot_ms{};
  Percentiles e2e_ms{};
  /// Of the medians against those of fault_free, with the noise of its second row at this rate;
  /// only in the summary.
  std::optional<Overhead> ttft_overhead_pct{};
  std::optional<Overhead> tpot_overhead_pct{};
  /// Of the 95th percentiles of all requests of the blocks, from 60 on; `n` of Percentiles has how
  /// many. `median` is that of the samples as they are.
  std::optional<Overhead> ttft_p95_overhead_pct{};
  std::optional<Overhead> tpot_p95_overhead_pct{};
};

/// One row of a sweep of collective calls: all calls of a run with the same operation, size, type,
/// operator and place. The time of a call is that of its slowest rank. Bandwidths are of the median
/// time, by the definitions of nccl-tests (doc/PERFORMANCE.md there), in GB/s, 10^9 bytes.
///
/// `ideal_ms` is what a fault-free call needs at the goodput that was measured in the same run;
/// `bound` and `model` are, in units of it, what the best possible algorithm and the model of the
/// strategy's own schedule need with the bandwidths that the faults left. All are null where there
/// is none: faults came or went meanwhile, goodput is unknown, or there is no model.
struct CollectiveRow {
  std::string operation;  ///< "all_reduce", ...
  std::int64_t size_bytes = 0;
  std::int64_t count = 0;  ///< with which it is called
  std::string dtype;
  std::string op;  ///< empty: it reduces nothing
  bool in_place = false;
  int n = 0;  ///< calls whose times count
  /// Of them, one that the run's end cut off: its time is what it had taken until then.
  int unfinished = 0;
  /// Calls whose times do not: of a strategy that plans, those before a plan that fits the ports
  /// was in use. Their elements are counted.
  int left_out = 0;
  /// There was no such plan before the last call ended: all calls count.
  bool unsettled = false;
  /// Calls that no fault met, where others of the row were met: what the fault cost is not in them,
  /// so that their times do not count either.
  int untouched = 0;
  int struck = 0;  ///< of the calls that count, those that a fault met
  double p50_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  double algbw = 0;
  double busbw = 0;
  std::int64_t wrong_elements = 0;
  std::int64_t checked_elements = 0;
  std::vector<double> send;  ///< bandwidth that each node had, 1 = whole; empty: not one value
  std::vector<double> receive;
  std::optional<double> ideal_ms;
  std::optional<double> time_over_ideal;
  std::optional<double> bound;
  /// The bound without what ports that were idle let pass at once: nothing takes less.
  std::optional<double> least;
  std::optional<double> time_over_bound;
  std::optional<double> model;
  std::optional<double> time_over_model;
  /// Of r2_allreduce: the formula of its authors, over the healthy ring (schedule::r2Formula), with
  /// the chunks that its schedule really had; no chunks: where that is a ring alone.
  std::optional<double> formula;
  std::optional<int> formula_chunks;
  std::optional<double> time_over_formula;
  /// So little that it mostly passes in the bursts of the ports, above their rate.
  bool latency_only = false;
  bool mis_measured = false;  ///< better than possible by more than measurements vary
};

/// Time in which computing stood still for one phase of a model's communication.
struct ExposedPhase {
  std::string phase;     ///< as in TrainingFacts
  double ms = 0;         ///< of an iteration; mean of all iterations and ranks
  double share_pct = 0;  ///< of the iterations' time
};

/// Of the samples that were taken while a run was made.
struct LoadRange {
  double min = 0;
  double median = 0;
  double max = 0;
};

/// What the machine did while a run was made, setting up and taking down included; null where the
/// kernel does not say it. Percentages are of the time of all its processors.
struct MachineLoad {
  int samples = 0;
  std::optional<double> others_pct;       ///< programs that are not of this run, at least; mean
  std::optional<LoadRange> busy_pct;      ///< all programs, and interrupts
  std::optional<LoadRange> stolen_pct;    ///< by the host of a virtual machine
  std::optional<LoadRange> load_average;  ///< programs that run or wait, of the last minute
  std::optional<double> waiting_pct;      ///< of the time in which a program waited for a processor
};

/// One execution of the workload under one strategy.
struct Run {
  std::string strategy;  ///< the name of its row
  std::string kind;      ///< what it does: the strategy's name, also where the row has another
  Json options = Json::object();  ///< the strategy's options as used
  int block = 0;                  ///< repetition this run belongs to, from 0
  Arm arm = Arm::kPlain;
  bool faulted = false;  ///< faults were due in this run
  RunStatus status = RunStatus::kOk;
  std::string message;  ///< why, when the status is not ok
  /// Why its block is left out of all comparisons, though it did its work; empty: it is not.
  std::string void_because;
  double duration_ms = 0;  ///< start barrier until the last rank's end
  /// Time that the slowest rank spent on writing checkpoints; a part of the strategy's overhead.
  double checkpoint_ms = 0;
  std::vector<Iteration> iterations;
  /// What a run that ended early was busy with: `ms` until the run ended, and nobody knows how much
  /// longer it would have taken. null: nothing, or the run came to its end.
  std::optional<Iteration> unfinished;
  std::int64_t wrong_elements = 0;
  std::int64_t checked_elements = 0;
  std::string digest;  ///< of every result on every rank
  std::optional<Quantity> throughput;
  /// What was done in the first second after the last fault was taken back, in percent of what
  /// fault_free does in a second; null: there was no such second, or nothing to compare with.
  std::optional<double> after_pct;
  /// From then until a second began in which 95 % of that was done; null: as above, or there was no
  /// such second (then `after_fault` is not null).
  std::optional<double> back_to_95_pct_ms;
  std::optional<AfterFault> after_fault;
  std::vector<Failover> failovers;
  /// Likewise of connections that carried nothing at that time: verdicts, and nothing to pause.
  std::vector<Failover> idle_failovers;
  std::vector<Failback> failbacks;
  std::vector<Degradation> degradations;
  std::vector<RankError> errors;
  std::vector<Restart> restarts;
  std::vector<Shrink> shrinks;
  std::vector<Shrink> rebuilds;  ///< by programs that are not ours, without losing one
  std::vector<Exclusion> exclusions;
  std::vector<RailTotals> rails;
  std::vector<RailSeries> rail_series;
  std::vector<AppliedFault> faults;
  std::vector<Evidence> evidence;
  std::vector<ResourceUse> resources;
  std::map<std::string, std::int64_t> counters;
  Telemetry telemetry;
  std::vector<AppliedPlan> plans;
  std::vector<PortTest> port_tests;
  std::vector<CollectiveRow> collectives;   ///< of the workload `collective`
  std::vector<ExposedPhase> exposed;        ///< of training that follows from a model
  std::vector<ProgramEnd> processes;        ///< of the workload `command`, by rank
  std::map<std::string, Quantity> metrics;  ///< likewise: what they told
  std::vector<ServedRequest> requests;      ///< of the workload `inference`
  std::vector<RateRow> rates;               ///< likewise
  /// TCP payload that one rail carried before the first run of the block, by iperf3; null: not
  /// measured.
  std::optional<double> goodput_mbit;
  std::string goodput_missing;      ///< why it was not, though it could have been; empty: it was
  std::optional<MachineLoad> load;  ///< null: of an older result
};

/// The words that JSON uses: "faulted", "hung", ...
const char* nameOf(Arm arm);
const char* nameOf(RunStatus status);

/// What a run does; results of earlier versions have only the name of its row.
inline const std::string& kindOf(const Run& run) {
  return run.kind.empty() ? run.strategy : run.kind;
}

/// The row that others are compared with: what they cost, what they keep of its speed. It is
/// neither a second row of the same kind (`as`), which shows the noise, nor that of drift_check,
/// whose runs lie before and after all blocks.
inline constexpr std::string_view kReferenceRow = "fault_free";

/// The latest plan for the largest size, which says what the run came to; nullptr without plans.
const AppliedPlan* lastPlanOfLargest(const Run& run);

}  // namespace faultline::reports

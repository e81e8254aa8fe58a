#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

/// The result model: what one `faultline run` found out. These structs are result.json, key by key
/// (docs/report.md, contract of the output directory); every renderer reads them and nothing else.
///
/// Times are milliseconds on the monotonic clock from the start of their run: zero is when all
/// ranks have passed the start barrier, after warm-up. Bytes are bytes. An absent optional is
/// written as null and means "did not happen" or "not enough samples to say".
namespace faultline::reports {

/// The value of the key `schema`. A reader refuses another major number.
inline constexpr const char* kResultSchema = "faultline.result/1";

/// JSON that keeps the order of its keys, so that two results can be compared line by line.
using Json = nlohmann::ordered_json;

enum class Verdict { kPass, kFail, kInvalid, kError };
enum class Arm { kPlain, kArmed, kFaulted };
enum class RunStatus { kOk, kFailed, kHung, kInvalid };
enum class Origin { kMeasured, kModelled };

/// A number with the unit people read it in, e.g. {12.4, "iterations/s"}.
struct Quantity {
  double value = 0;
  std::string unit;
};

/// What the numbers depend on: the machine, its settings, and what really was loaded.
struct Environment {
  std::string kernel;
  std::string cpu;
  int cores = 0;
  std::optional<std::string> gpu;   ///< null: none was used
  std::optional<std::string> nccl;  ///< null: none was used
  /// Program and library versions by name, e.g. {"faultline": "0.1.0", "libnl": "3.7.0"}.
  std::map<std::string, std::string> versions;
  std::string git;  ///< commit of the faultline build, with "-dirty" when it was not clean
  std::map<std::string, std::string> qdisc;  ///< shaping of the rails: parameter -> value
  std::map<std::string, std::string> tcp;    ///< socket and sysctl settings: name -> value
  std::string congestion_control;
  std::vector<std::string> libraries;  ///< paths of the shared objects really loaded
};

/// One iteration of the workload, as the slowest rank saw it.
struct Iteration {
  int index = 0;
  double start_ms = 0;
  double ms = 0;
  /// How long computing stood still for communication, mean over the ranks; null: not known.
  std::optional<double> exposed_ms{};
};

/// One rail of one channel found dead, fenced, and its data moved to other rails.
struct Failover {
  int rank = 0;           ///< who saw it
  int rail = 0;           ///< the failed rail
  int peer = 0;           ///< the other end
  std::string direction;  ///< "send", "recv" or "both": what was under way, seen from `rank`
  std::string cause;      ///< e.g. "local_nic", "remote_nic", "path"
  std::string verdict;    ///< by what it was known, e.g. "port_event", "reset", "probes"
  std::string where = "unknown";  ///< "local", "remote", "between" or "unknown", seen from `rank`
  /// Of cause "path": which direction carried nothing, seen from `rank`: "outgoing", "incoming",
  /// "both", or "unknown".
  std::string dead_direction = "unknown";
  std::optional<double> fault_ms;     ///< the injector's moment; null when no fault of ours matches
  double fault_within_ms = 0;         ///< it struck not later than so much after it
  std::optional<double> detected_ms;  ///< the rail was declared dead
  std::optional<double> fenced_ms;    ///< both ends fenced: no byte can land on it any more
  std::optional<double> resumed_ms;   ///< what was outstanding has been delivered elsewhere
  std::optional<double> restored_ms;  ///< the rail carries data again (failback)
  double pause_ms = 0;                ///< `failover_pause_ms` of the contract
  std::int64_t resent_bytes = 0;
  std::int64_t duplicate_bytes = 0;  ///< arrived twice and thrown away; never reduced twice

  /// False: it took so long to do the fault (other changes of the network had the kernel's lock)
  /// that nobody knows when it struck. Then `pause_ms` counts from when it surely had, and how
  /// long it took to be noticed is in no statistic.
  bool timed() const { return fault_within_ms <= kMomentKnownMs; }
  static constexpr double kMomentKnownMs = 5;
};

/// A healed rail taken back into use.
struct Failback {
  int rank = 0;
  int rail = 0;
  int peer = 0;
  double at_ms = 0;  ///< first payload on the rail again
};

/// A rail that lived and was far slower than the others.
struct Degradation {
  int rank = 0;  ///< who saw it: what it sent was slow
  int rail = 0;
  int peer = 0;
  double at_ms = 0;                ///< it was found to be
  std::optional<double> until_ms;  ///< it was found to be so no more; null: not before the end
  double share = 0;                ///< what it carried until `at_ms`, of the fastest other rail
};

/// The error with which a rank gave its job up.
struct RankError {
  int rank = 0;
  double at_ms = 0;     ///< the controller heard of it
  std::string message;  ///< what the library returned to the rank
};

/// What a fail-stop library costs: everything dies, waits, loads a checkpoint and works again.
struct Restart {
  double fault_ms = 0;
  double hang_ms = 0;       ///< from the fault until the watchdog fired
  double isolate_ms = 0;    ///< ranks killed, waiting until the port was back
  double load_ms = 0;       ///< ranks started and the checkpoint read
  int lost_iterations = 0;  ///< begun before, done again after; with the one that was cut off
  double lost_ms = 0;       ///< time that they had taken until the fault
  std::optional<int> cut_iteration;         ///< the one that was under way
  std::optional<int> checkpoint_iteration;  ///< the last iteration in the checkpoint file
  /// hang_ms + isolate_ms + load_ms + lost_ms, had the watchdog been the usual 600 s.
  std::optional<double> unscaled_total_ms;
};

/// Processes had died or left, and the others went on as fewer ranks.
struct Shrink {
  std::optional<double> fault_ms;  ///< the latest fault before it; null: there was none
  double noticed_ms = 0;           ///< the first rank that was left had its error
  double resumed_ms = 0;           ///< all that were left had a communicator and the same state
  int ranks = 0;                   ///< that were left
  std::vector<int> missing;        ///< of the ranks at the start
  int iteration = 0;               ///< that they went on with
};

/// A rank that left the job because a port of its node was down (`exclude_rank`); the others are in
/// the Shrink that follows.
struct Exclusion {
  int rank = 0;
  double at_ms = 0;        ///< it left
  std::vector<int> rails;  ///< whose ports were down there
};

/// Totals of one rail of one node over the run, from the interface's counters.
struct RailTotals {
  int node = 0;
  int rail = 0;
  std::int64_t tx_bytes = 0;
  std::int64_t rx_bytes = 0;
};

/// Bytes that one rail of one node sent, over time.
struct RailSeries {
  int node = 0;
  int rail = 0;
  double start_ms = 0;  ///< where the first bin begins
  double bin_ms = 0;    ///< width of a bin
  std::vector<std::int64_t> tx_bytes;
};

/// An independent observation that a fault really happened (not the flag that was set read back).
struct Evidence {
  int fault = 0;         ///< index into Run::faults
  std::string kind;      ///< what was looked at, e.g. "peer_carrier", "tx_counters"
  std::string observed;  ///< what was seen, in words and numbers
  bool ok = false;
};

/// What the process of one rank held, from t = 0 on: looked at after every iteration. In a run with
/// restarts, of its last process.
struct ResourceUse {
  int rank = 0;
  std::int64_t memory_start_bytes = 0;  ///< resident, after warm-up
  std::int64_t memory_end_bytes = 0;    ///< after the last iteration
  std::int64_t memory_max_bytes = 0;    ///< the most after any iteration
  int open_files_start = 0;             ///< descriptors, likewise
  int open_files_end = 0;
  int open_files_max = 0;
  /// In the measured iterations, without what lies between them (data checks, barriers): processor
  /// time of all its threads, `compute: {burn}` included; system calls for communication; and the
  /// payload that it sent from t = 0 on.
  double cpu_ms = 0;
  std::int64_t system_calls = 0;
  std::int64_t sent_bytes = 0;
};

/// How a process of a program that is not ours ended (workload `command`).
struct ProgramEnd {
  int rank = 0;
  int node = 0;
  int exit_code = 0;  ///< as a shell has it: 128 and the number of a signal that ended it
  int signal = 0;     ///< that ended it; 0: none
  double at_ms = 0;
  std::string output;  ///< its folder, below that of the result: stdout.txt, stderr.txt, its files
};

struct FaultTarget {
  std::optional<int> node;
  std::optional<int> rail;
  std::optional<int> rank;
  std::string text;           ///< in words: "node 1, rail 0"
  std::optional<int> peer{};  ///< a node: not the link is meant, but the path to there
};

/// Proof that a `during` fault hit the iteration that it was meant for.
struct FaultHit {
  bool ok = false;
  std::optional<int> iteration;
  std::optional<double> progress_pct;  ///< how far the iteration was at the moment of applying
  std::string detail;                  ///< e.g. "iteration 20 ended 31 ms later on 4 of 4 ranks"
};

/// A fault as it was applied in one run.
struct AppliedFault {
  std::string kind;       ///< "port_down", ...
  std::string mechanism;  ///< how it was done here, e.g. "carrier of the switch's end"
  FaultTarget target;
  std::string trigger;                              ///< in words: "iteration 20, 50 %" or "at 2s"
  double start_ms = 0;                              ///< applied, and not later than
  double start_within_ms = 0;                       ///< so much after it
  std::optional<double> end_ms;                     ///< reverted; null: until the end of the run
  std::optional<FaultHit> hit;                      ///< null for faults triggered by time alone
  std::map<std::string, std::string> parameters{};  ///< of its kind, as a scenario writes them
};

/// What the ranks recorded (`telemetry: on`), as one list per field; entry i of all lists is one
/// event. docs/report.md has the kinds.
struct Telemetry {
  /// Events for which all lists have an entry.
  std::size_t size() const {
    return std::min({kind.size(), rank.size(), peer.size(), rail.size(), at_ms.size(), ms.size(),
                     bytes.size(), number.size()});
  }

  std::vector<std::string> kind;
  std::vector<int> rank;      ///< that recorded it
  std::vector<int> peer;      ///< the other end
  std::vector<int> rail;      ///< -1: of no rail
  std::vector<double> at_ms;  ///< begin
  std::vector<double> ms;     ///< length; 0: a moment
  std::vector<std::int64_t> bytes;
  std::vector<std::uint64_t> number;  ///< of the chunk on its rail and epoch, or of the message
};

/// What a port has, as a share of the job's fastest.
struct PortHealth {
  double send = 1;
  double receive = 1;
};

/// What a message of n bytes takes, as the ranks measured it when they began: latency + per_message
/// + n / bandwidth.
struct LinkCost {
  double latency_us = 0;
  double per_message_us = 0;
  double bandwidth = 0;  ///< bytes per second and direction, of the fastest port
};

/// How AllReduce of one size was done from a moment on (strategies that plan): told when a plan is
/// used for the first time. All ranks have the same.
struct AppliedPlan {
  double at_ms = 0;  ///< rank 0 issued the first call with it; below 0: in the warm-up
  std::uint32_t communicator = 0;  ///< 1: of all ranks
  std::uint64_t epoch = 0;         ///< changes of health before it
  std::uint64_t operation = 0;     ///< number of that call among the communicator's
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::string algorithm;
  int segments = 1;
  bool tried = false;              ///< for some calls, to see how long they take
  std::vector<PortHealth> health;  ///< by rank: what it was made for
  double predicted_ms = 0;         ///< by the planner's model
  double ring_ms = 0;              ///< likewise, of the best ring
  double bound_ms = 0;             ///< of the best possible algorithm, without latencies
  std::string hash;
  LinkCost link;
};

/// What a path between two ranks carried in a test of the ports, as a share of `bandwidth`
/// (LinkCost).
struct PathShare {
  int from = 0;
  int to = 0;
  double share = 0;
};

/// A test of the ports (strategies that plan): operations waited for it.
struct PortTest {
  double at_ms = 0;  ///< below 0: in the warm-up
  std::uint32_t communicator = 0;
  std::uint64_t operation = 0;  ///< number of the first call that waited
  double ms = 0;
  int rounds = 0;                     ///< exchanges between all ranks
  std::optional<double> lateness;     ///< time of the calls before it over the time predicted
  bool complete = false;              ///< else it was given up
  bool changed = false;               ///< it found a port to be other than before
  std::vector<PathShare> slow_paths;  ///< of its rounds, the slowest first, 32 at most
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
  std::optional<double> p50;
  std::optional<double> p95;
  std::optional<double> p99;
  std::optional<double> max;
  int n = 0;
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
  double goodput = 0;  ///< of `qps`, what is finished within the objectives
  Percentiles ttft_ms{};
  Percentiles tpot_ms{};
  Percentiles e2e_ms{};
  /// Of the medians against those of fault_free, with the noise of its second row at this rate;
  /// only in the summary.
  std::optional<Overhead> ttft_overhead_pct{};
  std::optional<Overhead> tpot_overhead_pct{};
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
  /// Calls whose times do not: of a strategy that plans, those before a plan that fits the ports
  /// was in use. Their elements are counted.
  int left_out = 0;
  /// There was no such plan before the last call ended: all calls count.
  bool unsettled = false;
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
  std::optional<double> time_over_bound;
  std::optional<double> model;
  std::optional<double> time_over_model;
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

/// One execution of the workload under one strategy.
struct Run {
  std::string strategy;  ///< the name of its row
  std::string kind;      ///< what it does: the strategy's name, also where the row has another
  Json options = Json::object();  ///< the strategy's options as used
  int block = 0;                  ///< repetition this run belongs to, from 0
  Arm arm = Arm::kPlain;
  bool faulted = false;  ///< faults were due in this run
  RunStatus status = RunStatus::kOk;
  std::string message;     ///< why, when the status is not ok
  double duration_ms = 0;  ///< start barrier until the last rank's end
  /// Time that the slowest rank spent on writing checkpoints; a part of the strategy's overhead.
  double checkpoint_ms = 0;
  std::vector<Iteration> iterations;
  std::int64_t wrong_elements = 0;
  std::int64_t checked_elements = 0;
  std::string digest;  ///< of every result on every rank
  std::optional<Quantity> throughput;
  std::vector<Failover> failovers;
  /// Likewise of connections that carried nothing at that time: verdicts, and nothing to pause.
  std::vector<Failover> idle_failovers;
  std::vector<Failback> failbacks;
  std::vector<Degradation> degradations;
  std::vector<RankError> errors;
  std::vector<Restart> restarts;
  std::vector<Shrink> shrinks;
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
  /// TCP payload that one rail carried before the ranks began, by iperf3; null: not measured.
  std::optional<double> goodput_mbit;
  std::string goodput_missing;  ///< why it was not, though it could have been; empty: it was
};

/// What two equal runs differ by: fault_free against its second row, block by block, in percent.
struct Noise {
  std::string strategy;  ///< the second row
  int pairs = 0;
  double band_pct = 0;              ///< 95 % of the pairs differ by at most this much
  double median_band_pct = 0;       ///< their median by at most this much, with 95 % certainty
  std::optional<double> drift_pct;  ///< equal runs at the end against those at the beginning
  std::string void_because;         ///< why no speed can be told; empty: it can
};

/// Whether the machine was the same at the end as at the beginning: fault-free runs before all
/// others and after them (`noise: {drift_check: N}`).
struct Drift {
  int before = 0;  ///< runs that have a speed
  int after = 0;
  std::optional<double> drift_pct;   ///< more time per unit of work after than before, medians
  std::optional<double> spread_pct;  ///< the most by which two on the same side differ
  std::optional<double> p;           ///< of Mann and Whitney's test, from 5 on each side on
  double limit_pct = 0;              ///< of drift_pct, in either direction
  std::string void_because;          ///< why no speed can be told; empty: it can
};

/// Of the workload `inference`, over all rates.
struct Latency {
  Percentiles ttft_ms;
  Percentiles tpot_ms;
  Percentiles e2e_ms;
};

/// What a modelled row follows from (docs/baselines.md has the formulas).
struct ModelParameter {
  std::string name;
  std::string value;    ///< as a scenario writes it
  std::string meaning;  ///< with the source of its default
};
/// A part of what it comes to.
struct ModelTerm {
  std::string name;
  double value = 0;
  std::string unit;
};
struct Model {
  std::vector<ModelParameter> parameters;
  std::vector<ModelTerm> terms;
};

/// One row of the table of strategies.
struct Summary {
  std::string strategy;
  Origin origin = Origin::kMeasured;
  int n = 0;                             ///< blocks that the row stands on
  std::optional<Overhead> overhead_pct;  ///< null for the reference itself
  /// What is added to the time that computing stands still for communication, in percent of a
  /// fault-free iteration; null where that is not known, or work was lost (docs/report.md).
  std::optional<Overhead> exposed_overhead_pct{};
  /// Overhead that the best possible algorithm would have; null where there is no model.
  std::optional<double> bound_pct;
  bool mis_measured = false;  ///< better than possible: these numbers are not to be believed
  std::string note;           ///< what one must know about the row; empty: nothing
  std::optional<Percentiles> failover_pause_ms;  ///< null: had no failover
  std::optional<Quantity> throughput;            ///< median of the blocks
  std::optional<Latency> latency;
  std::optional<Model> model{};  ///< null: the row was measured
  std::vector<RateRow> rates;    ///< of the workload `inference`, over all blocks
  /// The first of the rates at which less than 90 % of the requests are finished within the
  /// objectives; null: there is none.
  std::optional<double> knee_qps{};
};

/// One kind of message of a model's iteration, of the rank that has most of it.
struct TrainingPhase {
  std::string phase;            ///< "gradients", "tensor_forward", ...
  std::string operation;        ///< "all_reduce", ...; "send_receive"
  int ranks = 0;                ///< that take part in a call
  int calls = 0;                ///< of an iteration
  std::int64_t bytes = 0;       ///< of them all, of the larger of input and output
  std::int64_t real_bytes = 0;  ///< before `scale`
};

/// What follows from a model, a device and how they are divided (docs/training.md has the
/// formulas). Times and bytes with "real" in their names, and memory, are those before `scale`.
struct TrainingFacts {
  std::string model;
  std::string device;
  /// All times and bytes of the job are so many times smaller than the real ones.
  int scale = 1;
  std::int64_t parameters = 0;
  std::int64_t parameters_per_rank = 0;   ///< of the largest stage
  double flops_per_token = 0;             ///< forward and backward, of the whole model
  std::int64_t tokens_per_iteration = 0;  ///< of all ranks
  double compute_ms = 0;                  ///< of an iteration, of the slowest stage
  double real_compute_ms = 0;
  double states_bytes = 0;  ///< of a rank: parameters, gradients and optimizer states
  double activations_bytes = 0;
  double device_bytes = 0;
  std::vector<TrainingPhase> phases;
};

/// One line of the scenario's `expect`, judged.
struct Expectation {
  std::string text;
  /// What the metric was: a number, a name, or null when it did not exist; an interval, or metrics
  /// that are compared with each other, as text.
  Json value;
  bool pass = false;
  std::string message;  ///< why it fails, when the value alone does not say so, or is void
  /// What it speaks of was measured wrong or proves nothing: it neither holds nor fails.
  bool is_void = false;
};

/// result.json.
struct ScenarioResult {
  Json scenario = Json::object();  ///< as read, defaults filled in
  std::uint64_t seed = 0;
  std::string started_at;  ///< wall clock, ISO 8601 in UTC
  double duration_ms = 0;  ///< the whole of it, set-up included
  Environment environment;
  Verdict verdict = Verdict::kError;
  /// Why the verdict is not pass, e.g. "port_down left no evidence in block 2 of hot_repair".
  std::string reason;
  bool interrupted = false;               ///< ended by the user: what is here is a part
  std::optional<TrainingFacts> training;  ///< null: the workload does not follow from a model
  std::vector<Run> runs;
  std::vector<Summary> summary;
  std::optional<Noise> noise;  ///< null without a second row of fault_free, or with too few pairs
  std::optional<Drift> drift;  ///< null without `noise: {drift_check: N}`
  std::vector<Expectation> expectations;
  std::vector<std::string> notes;  ///< what a reader must know of what was done, in sentences
};

/// The words that JSON uses: "pass", "faulted", "hung", "measured", ...
const char* nameOf(Verdict verdict);
const char* nameOf(Arm arm);
const char* nameOf(RunStatus status);
const char* nameOf(Origin origin);

/// What a run does; results of earlier versions have only the name of its row.
inline const std::string& kindOf(const Run& run) {
  return run.kind.empty() ? run.strategy : run.kind;
}

/// The latest plan for the largest size, which says what the run came to; nullptr without plans.
const AppliedPlan* lastPlanOfLargest(const Run& run);

/// Why no speed in this result means anything, because of noise or drift; empty: they do.
std::string voidBecause(const ScenarioResult& result);

/// scenario.name, or "unnamed".
std::string scenarioName(const ScenarioResult& result);

}  // namespace faultline::reports

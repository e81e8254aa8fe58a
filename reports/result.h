#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/run_result.h"

/// The result model: what one `faultline run` found out. These structs are result.json, key by key
/// (docs/report.md, contract of the output directory); every renderer reads them and nothing else.
///
/// Times are milliseconds on the monotonic clock from the start of their run: zero is when all
/// ranks have passed the start barrier, after warm-up. Bytes are bytes. An absent optional is
/// written as null and means "did not happen" or "not enough samples to say".
namespace faultline::reports {

/// The value of the key `schema`. A reader refuses another major number.
inline constexpr const char* kResultSchema = "faultline.result/1";

enum class Verdict { kPass, kFail, kInvalid, kError };
enum class Origin { kMeasured, kModelled };

/// What the numbers depend on: the machine, its settings, and what really was loaded.
struct Environment {
  std::string kernel;
  std::string cpu;
  int cores = 0;
  /// The machine's, "4 x NVIDIA H200, driver 580.159.04"; null: NVIDIA's driver is not there.
  std::optional<std::string> gpu;
  /// The version of which programs of a workload of kind command said that they have loaded it
  /// ("NCCL version 2.28.3" on their standard output), several with commas between; null: none did.
  std::optional<std::string> nccl;
  /// Program and library versions by name, e.g. {"faultline": "0.1.0", "libnl": "3.7.0"}.
  std::map<std::string, std::string> versions;
  std::string git;  ///< commit of the faultline build, with "-dirty" when it was not clean
  std::map<std::string, std::string> qdisc;  ///< shaping of the rails: parameter -> value
  std::map<std::string, std::string> tcp;    ///< socket and sysctl settings: name -> value
  std::string congestion_control;
  std::vector<std::string> libraries;  ///< paths of the shared objects really loaded
};

/// What two equal runs differ by: fault_free against its second row, block by block, in percent.
struct Noise {
  std::string strategy;  ///< the second row
  int pairs = 0;
  double band_pct = 0;         ///< 95 % of the pairs differ by at most this much
  double median_band_pct = 0;  ///< their median by at most this much, with 95 % certainty
  /// Equal runs at the end against those at the beginning. Null: of a server, whose blocks are
  /// asked for different things, or too few.
  std::optional<double> drift_pct;
  std::string void_because;  ///< why no speed can be told; empty: it can
  /// Of a server: as band_pct, of the median TTFT (TPOT) of a rate; the widest of those that
  /// fault_free keeps up with. Null: of no server, or no such rate.
  std::optional<double> ttft_band_pct{};
  std::optional<double> tpot_band_pct{};
};

/// Whether the machine was the same at the end as at the beginning: fault-free runs before all
/// others and after them (`noise: {drift_check: N}`), or those of the first half of the blocks and
/// of the other (`noise: {across_blocks: on}`).
struct Drift {
  int before = 0;  ///< runs that have a speed
  int after = 0;
  bool across_blocks = false;
  std::optional<double> drift_pct;   ///< more time per unit of work after than before, medians
  std::optional<double> spread_pct;  ///< the most by which two on the same side differ
  std::optional<double> p;           ///< of Mann and Whitney's test, from 5 on each side on
  double limit_pct = 0;              ///< of drift_pct, in either direction
  std::string void_because;          ///< why no speed can be told; empty: it can
};

/// Something by which what struck one strategy differed from what struck another of its block.
struct StrikeDifference {
  int block = 0;
  std::string fault;   ///< in words: "port_flap (node 1, rail 0), at 2s"
  std::string what;    ///< "strikes", "losses", "start", "progress", "iteration" or "length"
  std::string detail;  ///< what each strategy had
  bool voids = false;  ///< the block is left out of all comparisons
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

/// What one fault costs by a model: there is no percentage that could stand beside those of
/// executed rows, which are of a run with its faults, and of the requests of a run.
struct FaultCost {
  double seconds = 0;                ///< by which all requests together, or the job, take longer
  std::optional<double> requests{};  ///< that take longer; nullopt: of a job, all of which waits
};

/// One row of the table of strategies.
struct Summary {
  std::string strategy;
  Origin origin = Origin::kMeasured;
  int n = 0;                             ///< blocks that the row stands on
  std::optional<Overhead> overhead_pct;  ///< null for the reference itself, and with `fault_cost`
  /// What is added to the time that computing stands still for communication, in percent of a
  /// fault-free iteration; null where that is not known, or work was lost (docs/report.md).
  std::optional<Overhead> exposed_overhead_pct{};
  /// Overhead that the best possible algorithm would have; null where there is no model.
  std::optional<double> bound_pct;
  bool mis_measured = false;  ///< better than possible: these numbers are not to be believed
  std::string note;           ///< what one must know about the row; empty: nothing
  std::optional<Percentiles> failover_pause_ms;   ///< null: had no failover
  std::optional<Quantity> throughput;             ///< median of the blocks
  std::optional<AfterSpread> after_pct{};         ///< null: no run has it
  std::optional<BackSpread> back_to_95_pct_ms{};  ///< likewise
  std::optional<Latency> latency;  ///< of a server: of the requests of `pooled_rates`
  /// Of a server: `latency` and `overhead_pct` are of the first so many of `rates`: those that
  /// fault_free keeps up with, or all if there is none. Null: of no server, or a modelled row.
  std::optional<int> pooled_rates{};
  std::optional<Model> model{};           ///< null: the row was measured
  std::optional<FaultCost> fault_cost{};  ///< of modelled rows only
  std::vector<RateRow> rates;             ///< of the workload `inference`, over all blocks
  /// The first of the rates at which less than 90 % of the requests are finished within the
  /// objectives; null: there is none.
  std::optional<double> knee_qps{};
  std::string meaning{};  ///< what the strategy does, in a sentence or two
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
  std::string
      headline;  ///< what it comes to, in a sentence (headline.h); empty: of an older result
  bool interrupted = false;               ///< ended by the user: what is here is a part
  std::optional<TrainingFacts> training;  ///< null: the workload does not follow from a model
  std::vector<Run> runs;
  std::vector<Summary> summary;
  std::optional<Noise> noise;  ///< null without a second row of fault_free, or with too few pairs
  std::optional<Drift> drift;  ///< null without drift_check and across_blocks
  std::vector<StrikeDifference> strike_differences;
  std::vector<Expectation> expectations;
  std::vector<std::string> notes;  ///< what a reader must know of what was done, in sentences
  std::string scenario_file{};     ///< where the scenario was read from; empty: not from a file
};

/// The words that JSON uses: "pass", "measured", ...
const char* nameOf(Verdict verdict);
const char* nameOf(Origin origin);

/// Why no speed in this result means anything, because of noise or drift; empty: they do.
std::string voidBecause(const ScenarioResult& result);

/// scenario.name, or "unnamed".
std::string scenarioName(const ScenarioResult& result);

/// Names of what programs have told (Run::metrics) in any of the runs.
std::set<std::string> metricNames(const ScenarioResult& result);

}  // namespace faultline::reports

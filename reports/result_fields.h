#pragma once

#include <array>
#include <concepts>
#include <span>
#include <type_traits>

#include "reports/result.h"

/// Which key of result.json belongs to which member: one table per struct, walked by the writer
/// and by the reader, so that the two cannot drift. A visitor has `required(key, member)` (a
/// result without the key is refused) and `field(key, member)` (a missing key keeps its default).
namespace faultline::reports {

template <typename E>
struct EnumName {
  E value;
  const char* name;
};

inline std::span<const EnumName<Verdict>> namesOf(Verdict /*type*/) {
  static constexpr std::array<EnumName<Verdict>, 4> kNames{{{Verdict::kPass, "pass"},
                                                            {Verdict::kFail, "fail"},
                                                            {Verdict::kInvalid, "invalid"},
                                                            {Verdict::kError, "error"}}};
  return kNames;
}

inline std::span<const EnumName<Arm>> namesOf(Arm /*type*/) {
  static constexpr std::array<EnumName<Arm>, 3> kNames{
      {{Arm::kPlain, "plain"}, {Arm::kArmed, "armed"}, {Arm::kFaulted, "faulted"}}};
  return kNames;
}

inline std::span<const EnumName<RunStatus>> namesOf(RunStatus /*type*/) {
  static constexpr std::array<EnumName<RunStatus>, 4> kNames{{{RunStatus::kOk, "ok"},
                                                              {RunStatus::kFailed, "failed"},
                                                              {RunStatus::kHung, "hung"},
                                                              {RunStatus::kInvalid, "invalid"}}};
  return kNames;
}

inline std::span<const EnumName<Origin>> namesOf(Origin /*type*/) {
  static constexpr std::array<EnumName<Origin>, 2> kNames{
      {{Origin::kMeasured, "measured"}, {Origin::kModelled, "modelled"}}};
  return kNames;
}

/// T is U or const U: the same table serves reading and writing.
template <typename T, typename U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

template <typename V>
void visitFields(V& v, Of<Quantity> auto& quantity) {
  v.field("value", quantity.value);
  v.field("unit", quantity.unit);
}

template <typename V>
void visitFields(V& v, Of<Environment> auto& environment) {
  v.field("kernel", environment.kernel);
  v.field("cpu", environment.cpu);
  v.field("cores", environment.cores);
  v.field("gpu", environment.gpu);
  v.field("nccl", environment.nccl);
  v.field("versions", environment.versions);
  v.field("git", environment.git);
  v.field("qdisc", environment.qdisc);
  v.field("tcp", environment.tcp);
  v.field("congestion_control", environment.congestion_control);
  v.field("libraries", environment.libraries);
}

template <typename V>
void visitFields(V& v, Of<Iteration> auto& iteration) {
  v.field("index", iteration.index);
  v.field("start_ms", iteration.start_ms);
  v.field("ms", iteration.ms);
  v.field("exposed_ms", iteration.exposed_ms);
}

template <typename V>
void visitFields(V& v, Of<Failover> auto& failover) {
  v.field("rank", failover.rank);
  v.field("rail", failover.rail);
  v.field("peer", failover.peer);
  v.field("direction", failover.direction);
  v.field("cause", failover.cause);
  v.field("verdict", failover.verdict);
  v.field("where", failover.where);
  v.field("dead_direction", failover.dead_direction);
  v.field("fault_ms", failover.fault_ms);
  v.field("fault_within_ms", failover.fault_within_ms);
  v.field("detected_ms", failover.detected_ms);
  v.field("fenced_ms", failover.fenced_ms);
  v.field("resumed_ms", failover.resumed_ms);
  v.field("restored_ms", failover.restored_ms);
  v.field("pause_ms", failover.pause_ms);
  v.field("resent_bytes", failover.resent_bytes);
  v.field("duplicate_bytes", failover.duplicate_bytes);
}

template <typename V>
void visitFields(V& v, Of<Failback> auto& failback) {
  v.field("rank", failback.rank);
  v.field("rail", failback.rail);
  v.field("peer", failback.peer);
  v.field("at_ms", failback.at_ms);
}

template <typename V>
void visitFields(V& v, Of<Degradation> auto& degradation) {
  v.field("rank", degradation.rank);
  v.field("rail", degradation.rail);
  v.field("peer", degradation.peer);
  v.field("at_ms", degradation.at_ms);
  v.field("until_ms", degradation.until_ms);
  v.field("share", degradation.share);
}

template <typename V>
void visitFields(V& v, Of<RankError> auto& error) {
  v.required("rank", error.rank);
  v.field("at_ms", error.at_ms);
  v.field("message", error.message);
}

template <typename V>
void visitFields(V& v, Of<Restart> auto& restart) {
  v.field("fault_ms", restart.fault_ms);
  v.field("hang_ms", restart.hang_ms);
  v.field("isolate_ms", restart.isolate_ms);
  v.field("load_ms", restart.load_ms);
  v.field("lost_iterations", restart.lost_iterations);
  v.field("cut_iteration", restart.cut_iteration);
  v.field("lost_ms", restart.lost_ms);
  v.field("checkpoint_iteration", restart.checkpoint_iteration);
  v.field("unscaled_total_ms", restart.unscaled_total_ms);
}

template <typename V>
void visitFields(V& v, Of<Shrink> auto& shrink) {
  v.field("fault_ms", shrink.fault_ms);
  v.required("noticed_ms", shrink.noticed_ms);
  v.required("resumed_ms", shrink.resumed_ms);
  v.required("ranks", shrink.ranks);
  v.field("missing", shrink.missing);
  v.field("iteration", shrink.iteration);
}

template <typename V>
void visitFields(V& v, Of<Exclusion> auto& exclusion) {
  v.required("rank", exclusion.rank);
  v.required("at_ms", exclusion.at_ms);
  v.field("rails", exclusion.rails);
}

template <typename V>
void visitFields(V& v, Of<RailTotals> auto& totals) {
  v.field("node", totals.node);
  v.field("rail", totals.rail);
  v.field("tx_bytes", totals.tx_bytes);
  v.field("rx_bytes", totals.rx_bytes);
}

template <typename V>
void visitFields(V& v, Of<RailSeries> auto& series) {
  v.field("node", series.node);
  v.field("rail", series.rail);
  v.field("start_ms", series.start_ms);
  v.field("bin_ms", series.bin_ms);
  v.field("tx_bytes", series.tx_bytes);
}

template <typename V>
void visitFields(V& v, Of<Evidence> auto& evidence) {
  v.field("fault", evidence.fault);
  v.field("kind", evidence.kind);
  v.field("observed", evidence.observed);
  v.required("ok", evidence.ok);
}

template <typename V>
void visitFields(V& v, Of<ResourceUse> auto& use) {
  v.required("rank", use.rank);
  v.field("memory_start_bytes", use.memory_start_bytes);
  v.field("memory_end_bytes", use.memory_end_bytes);
  v.field("memory_max_bytes", use.memory_max_bytes);
  v.field("open_files_start", use.open_files_start);
  v.field("open_files_end", use.open_files_end);
  v.field("open_files_max", use.open_files_max);
  v.field("cpu_ms", use.cpu_ms);
  v.field("system_calls", use.system_calls);
  v.field("sent_bytes", use.sent_bytes);
}

template <typename V>
void visitFields(V& v, Of<ProgramEnd> auto& end) {
  v.required("rank", end.rank);
  v.field("node", end.node);
  v.required("exit_code", end.exit_code);
  v.field("signal", end.signal);
  v.field("at_ms", end.at_ms);
  v.field("output", end.output);
}

template <typename V>
void visitFields(V& v, Of<FaultTarget> auto& target) {
  v.field("node", target.node);
  v.field("rail", target.rail);
  v.field("rank", target.rank);
  v.field("text", target.text);
  v.field("peer", target.peer);
}

template <typename V>
void visitFields(V& v, Of<FaultHit> auto& hit) {
  v.required("ok", hit.ok);
  v.field("iteration", hit.iteration);
  v.field("progress_pct", hit.progress_pct);
  v.field("detail", hit.detail);
}

template <typename V>
void visitFields(V& v, Of<AppliedFault> auto& fault) {
  v.required("kind", fault.kind);
  v.field("mechanism", fault.mechanism);
  v.field("parameters", fault.parameters);
  v.field("target", fault.target);
  v.field("trigger", fault.trigger);
  v.field("start_ms", fault.start_ms);
  v.field("start_within_ms", fault.start_within_ms);
  v.field("end_ms", fault.end_ms);
  v.field("hit", fault.hit);
}

template <typename V>
void visitFields(V& v, Of<Telemetry> auto& telemetry) {
  v.field("kind", telemetry.kind);
  v.field("rank", telemetry.rank);
  v.field("peer", telemetry.peer);
  v.field("rail", telemetry.rail);
  v.field("at_ms", telemetry.at_ms);
  v.field("ms", telemetry.ms);
  v.field("bytes", telemetry.bytes);
  v.field("number", telemetry.number);
}

template <typename V>
void visitFields(V& v, Of<PortHealth> auto& health) {
  v.required("send", health.send);
  v.required("receive", health.receive);
}

template <typename V>
void visitFields(V& v, Of<LinkCost> auto& link) {
  v.field("latency_us", link.latency_us);
  v.field("per_message_us", link.per_message_us);
  v.field("bandwidth", link.bandwidth);
}

template <typename V>
void visitFields(V& v, Of<PathShare> auto& path) {
  v.required("from", path.from);
  v.required("to", path.to);
  v.required("share", path.share);
}

template <typename V>
void visitFields(V& v, Of<PortTest> auto& test) {
  v.field("at_ms", test.at_ms);
  v.field("communicator", test.communicator);
  v.field("operation", test.operation);
  v.field("ms", test.ms);
  v.field("rounds", test.rounds);
  v.field("lateness", test.lateness);
  v.field("complete", test.complete);
  v.field("changed", test.changed);
  v.field("slow_paths", test.slow_paths);
}

template <typename V>
void visitFields(V& v, Of<AppliedPlan> auto& plan) {
  v.field("at_ms", plan.at_ms);
  v.field("communicator", plan.communicator);
  v.field("epoch", plan.epoch);
  v.field("operation", plan.operation);
  v.field("elements", plan.elements);
  v.field("bytes", plan.bytes);
  v.required("algorithm", plan.algorithm);
  v.field("segments", plan.segments);
  v.field("tried", plan.tried);
  v.field("health", plan.health);
  v.field("predicted_ms", plan.predicted_ms);
  v.field("ring_ms", plan.ring_ms);
  v.field("bound_ms", plan.bound_ms);
  v.field("hash", plan.hash);
  v.field("link", plan.link);
}

template <typename V>
void visitFields(V& v, Of<CollectiveRow> auto& row) {
  v.required("operation", row.operation);
  v.field("size_bytes", row.size_bytes);
  v.field("count", row.count);
  v.field("dtype", row.dtype);
  v.field("op", row.op);
  v.field("in_place", row.in_place);
  v.field("n", row.n);
  v.field("left_out", row.left_out);
  v.field("unsettled", row.unsettled);
  v.field("p50_ms", row.p50_ms);
  v.field("min_ms", row.min_ms);
  v.field("max_ms", row.max_ms);
  v.field("algbw", row.algbw);
  v.field("busbw", row.busbw);
  v.field("wrong_elements", row.wrong_elements);
  v.field("checked_elements", row.checked_elements);
  v.field("send", row.send);
  v.field("receive", row.receive);
  v.field("ideal_ms", row.ideal_ms);
  v.field("time_over_ideal", row.time_over_ideal);
  v.field("bound", row.bound);
  v.field("time_over_bound", row.time_over_bound);
  v.field("model", row.model);
  v.field("time_over_model", row.time_over_model);
  v.field("latency_only", row.latency_only);
  v.field("mis_measured", row.mis_measured);
}

template <typename V>
void visitFields(V& v, Of<ExposedPhase> auto& exposed) {
  v.required("phase", exposed.phase);
  v.field("ms", exposed.ms);
  v.field("share_pct", exposed.share_pct);
}

template <typename V>
void visitFields(V& v, Of<TrainingPhase> auto& phase) {
  v.required("phase", phase.phase);
  v.field("operation", phase.operation);
  v.field("ranks", phase.ranks);
  v.field("calls", phase.calls);
  v.field("bytes", phase.bytes);
  v.field("real_bytes", phase.real_bytes);
}

template <typename V>
void visitFields(V& v, Of<TrainingFacts> auto& facts) {
  v.required("model", facts.model);
  v.field("device", facts.device);
  v.required("scale", facts.scale);
  v.field("parameters", facts.parameters);
  v.field("parameters_per_rank", facts.parameters_per_rank);
  v.field("flops_per_token", facts.flops_per_token);
  v.field("tokens_per_iteration", facts.tokens_per_iteration);
  v.field("compute_ms", facts.compute_ms);
  v.field("real_compute_ms", facts.real_compute_ms);
  v.field("states_bytes", facts.states_bytes);
  v.field("activations_bytes", facts.activations_bytes);
  v.field("device_bytes", facts.device_bytes);
  v.field("phases", facts.phases);
}

template <typename V>
void visitFields(V& v, Of<ServedRequest> auto& request) {
  v.required("id", request.id);
  v.field("rate", request.rate);
  v.field("prompt", request.prompt);
  v.field("output", request.output);
  v.required("fate", request.fate);
  v.field("begun", request.begun);
  v.field("arrival_ms", request.arrival_ms);
  v.field("ttft_ms", request.ttft_ms);
  v.field("tpot_ms", request.tpot_ms);
  v.field("e2e_ms", request.e2e_ms);
}

template <typename V>
void visitFields(V& v, Of<RateRow> auto& rate) {
  v.required("qps", rate.qps);
  v.field("requests", rate.requests);
  v.field("finished", rate.finished);
  v.field("late", rate.late);
  v.field("lost", rate.lost);
  v.field("redone", rate.redone);
  v.field("goodput", rate.goodput);
  v.field("ttft_ms", rate.ttft_ms);
  v.field("tpot_ms", rate.tpot_ms);
  v.field("e2e_ms", rate.e2e_ms);
  v.field("ttft_overhead_pct", rate.ttft_overhead_pct);
  v.field("tpot_overhead_pct", rate.tpot_overhead_pct);
}

template <typename V>
void visitFields(V& v, Of<Run> auto& run) {
  v.required("strategy", run.strategy);
  v.field("kind", run.kind);
  v.field("options", run.options);
  v.field("block", run.block);
  v.required("arm", run.arm);
  v.field("faulted", run.faulted);
  v.required("status", run.status);
  v.field("message", run.message);
  v.field("duration_ms", run.duration_ms);
  v.field("checkpoint_ms", run.checkpoint_ms);
  v.field("iterations", run.iterations);
  v.field("wrong_elements", run.wrong_elements);
  v.field("checked_elements", run.checked_elements);
  v.field("digest", run.digest);
  v.field("throughput", run.throughput);
  v.field("failovers", run.failovers);
  v.field("idle_failovers", run.idle_failovers);
  v.field("failbacks", run.failbacks);
  v.field("degradations", run.degradations);
  v.field("errors", run.errors);
  v.field("restarts", run.restarts);
  v.field("shrinks", run.shrinks);
  v.field("exclusions", run.exclusions);
  v.field("rails", run.rails);
  v.field("rail_series", run.rail_series);
  v.field("faults", run.faults);
  v.field("evidence", run.evidence);
  v.field("resources", run.resources);
  v.field("counters", run.counters);
  v.field("telemetry", run.telemetry);
  v.field("plans", run.plans);
  v.field("port_tests", run.port_tests);
  v.field("collectives", run.collectives);
  v.field("exposed", run.exposed);
  v.field("processes", run.processes);
  v.field("metrics", run.metrics);
  v.field("requests", run.requests);
  v.field("rates", run.rates);
  v.field("goodput_mbit", run.goodput_mbit);
  v.field("goodput_missing", run.goodput_missing);
}

template <typename V>
void visitFields(V& v, Of<Overhead> auto& overhead) {
  v.required("median", overhead.median);
  v.field("ci95", overhead.ci95);
  v.field("at_most", overhead.at_most);
  v.field("distinguishable", overhead.distinguishable);
  v.field("n", overhead.n);
}

template <typename V>
void visitFields(V& v, Of<Noise> auto& noise) {
  v.field("strategy", noise.strategy);
  v.field("pairs", noise.pairs);
  v.required("band_pct", noise.band_pct);
  v.field("median_band_pct", noise.median_band_pct);
  v.field("drift_pct", noise.drift_pct);
  v.field("void_because", noise.void_because);
}

template <typename V>
void visitFields(V& v, Of<Drift> auto& drift) {
  v.field("before", drift.before);
  v.field("after", drift.after);
  v.field("drift_pct", drift.drift_pct);
  v.field("spread_pct", drift.spread_pct);
  v.field("p", drift.p);
  v.field("limit_pct", drift.limit_pct);
  v.field("void_because", drift.void_because);
}

template <typename V>
void visitFields(V& v, Of<Percentiles> auto& percentiles) {
  v.field("p50", percentiles.p50);
  v.field("p95", percentiles.p95);
  v.field("p99", percentiles.p99);
  v.field("max", percentiles.max);
  v.field("n", percentiles.n);
}

template <typename V>
void visitFields(V& v, Of<Latency> auto& latency) {
  v.field("ttft_ms", latency.ttft_ms);
  v.field("tpot_ms", latency.tpot_ms);
  v.field("e2e_ms", latency.e2e_ms);
}

template <typename V>
void visitFields(V& v, Of<ModelParameter> auto& parameter) {
  v.required("name", parameter.name);
  v.required("value", parameter.value);
  v.field("meaning", parameter.meaning);
}

template <typename V>
void visitFields(V& v, Of<ModelTerm> auto& term) {
  v.required("name", term.name);
  v.required("value", term.value);
  v.field("unit", term.unit);
}

template <typename V>
void visitFields(V& v, Of<Model> auto& model) {
  v.field("parameters", model.parameters);
  v.field("terms", model.terms);
}

template <typename V>
void visitFields(V& v, Of<Summary> auto& summary) {
  v.required("strategy", summary.strategy);
  v.field("origin", summary.origin);
  v.field("n", summary.n);
  v.field("overhead_pct", summary.overhead_pct);
  v.field("exposed_overhead_pct", summary.exposed_overhead_pct);
  v.field("bound_pct", summary.bound_pct);
  v.field("mis_measured", summary.mis_measured);
  v.field("note", summary.note);
  v.field("failover_pause_ms", summary.failover_pause_ms);
  v.field("throughput", summary.throughput);
  v.field("latency", summary.latency);
  v.field("model", summary.model);
  v.field("rates", summary.rates);
  v.field("knee_qps", summary.knee_qps);
}

template <typename V>
void visitFields(V& v, Of<Expectation> auto& expectation) {
  v.required("text", expectation.text);
  v.field("value", expectation.value);
  v.required("pass", expectation.pass);
  v.field("void", expectation.is_void);
  v.field("message", expectation.message);
}

/// Without `schema`, which the reader checks and the writer puts in front.
template <typename V>
void visitFields(V& v, Of<ScenarioResult> auto& result) {
  v.field("scenario", result.scenario);
  v.field("seed", result.seed);
  v.field("started_at", result.started_at);
  v.field("duration_ms", result.duration_ms);
  v.required("verdict", result.verdict);
  v.field("reason", result.reason);
  v.field("interrupted", result.interrupted);
  v.field("environment", result.environment);
  v.field("training", result.training);
  v.required("runs", result.runs);
  v.field("summary", result.summary);
  v.field("noise", result.noise);
  v.field("drift", result.drift);
  v.field("notes", result.notes);
  v.field("expectations", result.expectations);
}

}  // namespace faultline::reports

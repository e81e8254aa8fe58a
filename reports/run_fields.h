#pragma once

#include <array>
#include <span>

#include "reports/run_event_fields.h"
#include "reports/run_result.h"

/// The keys of a run (run_event_fields.h says what for).
namespace faultline::reports {

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

template <typename V>
void visitFields(V& v, Of<Quantity> auto& quantity) {
  v.field("value", quantity.value);
  v.field("unit", quantity.unit);
}

template <typename V>
void visitFields(V& v, Of<Iteration> auto& iteration) {
  v.field("index", iteration.index);
  v.field("start_ms", iteration.start_ms);
  v.field("ms", iteration.ms);
  v.field("attempts", iteration.attempts);
  v.field("exposed_ms", iteration.exposed_ms);
}

template <typename V>
void visitFields(V& v, Of<AfterFault> auto& after) {
  v.required("counted", after.counted);
  v.field("reverted_ms", after.reverted_ms);
  v.field("watched_ms", after.watched_ms);
  v.field("after_pct", after.after_pct);
  v.field("back_ms", after.back_ms);
}

template <typename V>
void visitFields(V& v, Of<AfterSpread> auto& spread) {
  v.required("median", spread.median);
  v.field("min", spread.min);
  v.field("n", spread.n);
}

template <typename V>
void visitFields(V& v, Of<BackSpread> auto& spread) {
  v.field("median", spread.median);
  v.field("max", spread.max);
  v.field("n", spread.n);
  v.field("never", spread.never);
  v.field("ended", spread.ended);
  v.field("watched_ms", spread.watched_ms);
  v.field("median_at_least", spread.median_at_least);
  v.field("max_at_least", spread.max_at_least);
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
  v.field("unfinished", row.unfinished);
  v.field("left_out", row.left_out);
  v.field("unsettled", row.unsettled);
  v.field("untouched", row.untouched);
  v.field("struck", row.struck);
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
  v.field("least", row.least);
  v.field("time_over_bound", row.time_over_bound);
  v.field("model", row.model);
  v.field("time_over_model", row.time_over_model);
  v.field("formula", row.formula);
  v.field("formula_chunks", row.formula_chunks);
  v.field("time_over_formula", row.time_over_formula);
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
  v.field("burst_below_requests", rate.burst_below_requests);
  v.field("ttft_ms", rate.ttft_ms);
  v.field("tpot_ms", rate.tpot_ms);
  v.field("e2e_ms", rate.e2e_ms);
  v.field("ttft_overhead_pct", rate.ttft_overhead_pct);
  v.field("tpot_overhead_pct", rate.tpot_overhead_pct);
  v.field("ttft_p95_overhead_pct", rate.ttft_p95_overhead_pct);
  v.field("tpot_p95_overhead_pct", rate.tpot_p95_overhead_pct);
}

template <typename V>
void visitFields(V& v, Of<LoadRange> auto& range) {
  v.required("min", range.min);
  v.required("median", range.median);
  v.required("max", range.max);
}

template <typename V>
void visitFields(V& v, Of<MachineLoad> auto& load) {
  v.field("samples", load.samples);
  v.field("others_pct", load.others_pct);
  v.field("busy_pct", load.busy_pct);
  v.field("stolen_pct", load.stolen_pct);
  v.field("load_average", load.load_average);
  v.field("waiting_pct", load.waiting_pct);
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
  v.field("void_because", run.void_because);
  v.field("duration_ms", run.duration_ms);
  v.field("checkpoint_ms", run.checkpoint_ms);
  v.field("iterations", run.iterations);
  v.field("unfinished", run.unfinished);
  v.field("wrong_elements", run.wrong_elements);
  v.field("checked_elements", run.checked_elements);
  v.field("digest", run.digest);
  v.field("throughput", run.throughput);
  v.field("after_pct", run.after_pct);
  v.field("back_to_95_pct_ms", run.back_to_95_pct_ms);
  v.field("after_fault", run.after_fault);
  v.field("failovers", run.failovers);
  v.field("idle_failovers", run.idle_failovers);
  v.field("failbacks", run.failbacks);
  v.field("degradations", run.degradations);
  v.field("errors", run.errors);
  v.field("restarts", run.restarts);
  v.field("shrinks", run.shrinks);
  v.field("rebuilds", run.rebuilds);
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
  v.field("load", run.load);
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
void visitFields(V& v, Of<Percentiles> auto& percentiles) {
  v.field("p50", percentiles.p50);
  v.field("p95", percentiles.p95);
  v.field("p99", percentiles.p99);
  v.field("max", percentiles.max);
  v.field("n", percentiles.n);
}

}  // namespace faultline::reports

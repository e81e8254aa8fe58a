#pragma once

#include <array>
#include <span>

#include "reports/result.h"
#include "reports/run_fields.h"

/// The keys of a result (run_event_fields.h says what for).
namespace faultline::reports {

inline std::span<const EnumName<Verdict>> namesOf(Verdict /*type*/) {
  static constexpr std::array<EnumName<Verdict>, 4> kNames{{{Verdict::kPass, "pass"},
                                                            {Verdict::kFail, "fail"},
                                                            {Verdict::kInvalid, "invalid"},
                                                            {Verdict::kError, "error"}}};
  return kNames;
}

inline std::span<const EnumName<Origin>> namesOf(Origin /*type*/) {
  static constexpr std::array<EnumName<Origin>, 2> kNames{
      {{Origin::kMeasured, "measured"}, {Origin::kModelled, "modelled"}}};
  return kNames;
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
void visitFields(V& v, Of<Noise> auto& noise) {
  v.field("strategy", noise.strategy);
  v.field("pairs", noise.pairs);
  v.required("band_pct", noise.band_pct);
  v.field("median_band_pct", noise.median_band_pct);
  v.field("drift_pct", noise.drift_pct);
  v.field("void_because", noise.void_because);
  v.field("ttft_band_pct", noise.ttft_band_pct);
  v.field("tpot_band_pct", noise.tpot_band_pct);
}

template <typename V>
void visitFields(V& v, Of<Drift> auto& drift) {
  v.field("before", drift.before);
  v.field("after", drift.after);
  v.field("across_blocks", drift.across_blocks);
  v.field("drift_pct", drift.drift_pct);
  v.field("spread_pct", drift.spread_pct);
  v.field("p", drift.p);
  v.field("limit_pct", drift.limit_pct);
  v.field("void_because", drift.void_because);
}

template <typename V>
void visitFields(V& v, Of<StrikeDifference> auto& difference) {
  v.required("block", difference.block);
  v.field("fault", difference.fault);
  v.field("what", difference.what);
  v.field("detail", difference.detail);
  v.field("voids", difference.voids);
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
void visitFields(V& v, Of<FaultCost> auto& cost) {
  v.required("seconds", cost.seconds);
  v.required("requests", cost.requests);
}

template <typename V>
void visitFields(V& v, Of<Summary> auto& summary) {
  v.required("strategy", summary.strategy);
  v.field("meaning", summary.meaning);
  v.field("origin", summary.origin);
  v.field("n", summary.n);
  v.field("overhead_pct", summary.overhead_pct);
  v.field("exposed_overhead_pct", summary.exposed_overhead_pct);
  v.field("bound_pct", summary.bound_pct);
  v.field("mis_measured", summary.mis_measured);
  v.field("note", summary.note);
  v.field("failover_pause_ms", summary.failover_pause_ms);
  v.field("throughput", summary.throughput);
  v.field("after_pct", summary.after_pct);
  v.field("back_to_95_pct_ms", summary.back_to_95_pct_ms);
  v.field("latency", summary.latency);
  v.field("pooled_rates", summary.pooled_rates);
  v.field("model", summary.model);
  v.field("fault_cost", summary.fault_cost);
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
  v.field("scenario_file", result.scenario_file);
  v.field("seed", result.seed);
  v.field("started_at", result.started_at);
  v.field("duration_ms", result.duration_ms);
  v.required("verdict", result.verdict);
  v.field("reason", result.reason);
  v.field("headline", result.headline);
  v.field("interrupted", result.interrupted);
  v.field("environment", result.environment);
  v.field("training", result.training);
  v.required("runs", result.runs);
  v.field("summary", result.summary);
  v.field("noise", result.noise);
  v.field("drift", result.drift);
  v.field("strike_differences", result.strike_differences);
  v.field("notes", result.notes);
  v.field("expectations", result.expectations);
}

}  // namespace faultline::reports

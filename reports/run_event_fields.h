#pragma once

#include "base/json_fields.h"
#include "reports/run_events.h"

/// Which key of result.json belongs to which member (base/json_fields.h).
namespace faultline::reports {

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
  v.field("numbers", evidence.numbers);
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
void visitFields(V& v, Of<AskedStrike> auto& asked) {
  v.field("start_ms", asked.start_ms);
  v.field("iteration", asked.iteration);
  v.field("progress_pct", asked.progress_pct);
  v.field("ms", asked.ms);
  v.field("losses", asked.losses);
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
  v.field("asked", fault.asked);
  v.field("losses", fault.losses);
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
  v.field("collective", plan.collective);
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

}  // namespace faultline::reports

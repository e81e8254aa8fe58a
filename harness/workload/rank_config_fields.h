#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/json_fields.h"
#include "harness/scenario/json.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/rank_config.h"
#include "resilient_ccl/reduction/data_type.h"
#include "resilient_ccl/schedule/collective.h"

/// The tables of fields of a rank's configuration (base/json_fields.h), with what its numbers may
/// be. Of a scenario only what ranks are told is in them.

namespace faultline::reduction {

inline std::span<const EnumName<DataType>> namesOf(DataType /*which*/) {
  static const auto names = enumNames(kAllDataTypes, [](DataType one) { return nameOf(one); });
  return names;
}
inline std::span<const EnumName<ReduceOp>> namesOf(ReduceOp /*which*/) {
  static const auto names = enumNames(kAllReduceOps, [](ReduceOp one) { return nameOf(one); });
  return names;
}

}  // namespace faultline::reduction

namespace faultline::schedule {

inline std::span<const EnumName<Collective>> namesOf(Collective /*which*/) {
  static const auto names = enumNames(kAllCollectives, collectiveName);
  return names;
}

}  // namespace faultline::schedule

namespace faultline::channel {

inline std::span<const EnumName<Policy>> namesOf(Policy /*which*/) {
  static constexpr EnumName<Policy> kNames[] = {{Policy::kPinned, "pinned"},
                                                {Policy::kPull, "pull"}};
  return kNames;
}

}  // namespace faultline::channel

namespace faultline::model {

inline std::span<const EnumName<Family>> namesOf(Family /*which*/) {
  static const auto names =
      enumNames(std::array{Family::kGpt, Family::kLlama}, [](Family one) { return name(one); });
  return names;
}

template <typename V>
void visitFields(V& v, Of<ModelCard> auto& card) {
  v.required("name", card.name);
  v.required("family", card.family);
  v.required("layers", card.layers, kPositive);
  v.required("hidden", card.hidden, kPositive);
  v.required("heads", card.heads, kPositive);
  v.required("kv_heads", card.kvHeads, kPositive);
  v.required("ffn", card.ffn, kPositive);
  v.required("vocabulary", card.vocabulary, kPositive);
  v.required("sequence", card.sequence, kPositive);
  v.required("experts", card.experts, kPositive);
  v.required("active_experts", card.activeExperts, kPositive);
  v.required("dtype", card.dtype);
}

template <typename V>
void visitFields(V& v, Of<DeviceCard> auto& card) {
  v.required("name", card.name);
  v.required("gflops", card.gflops, kPositive);
  v.required("efficiency", card.efficiency, kShare);
  v.required("memory", card.memory, kPositive);
  v.required("memory_bandwidth", card.memoryBandwidth, kNotNegative);
}

/// It computes at all.
Status checkFields(const DeviceCard& card);

template <typename V>
void visitFields(V& v, Of<Parallel> auto& parallel) {
  v.required("data", parallel.data, kPositive);
  v.required("tensor", parallel.tensor, kPositive);
  v.required("pipeline", parallel.pipeline, kPositive);
  v.required("expert", parallel.expert, kPositive);
  v.required("zero", parallel.zero, NumberRange{.least = 0, .most = 3});
}

template <typename V>
void visitFields(V& v, Of<Training> auto& training) {
  v.required("model", training.model);
  v.required("device", training.device);
  v.required("parallel", training.parallel);
  v.required("micro_batches", training.microBatches, kPositive);
  v.required("micro_batch", training.microBatch, kPositive);
  v.required("sequence", training.sequence, kPositive);
  v.required("buckets", training.buckets, kPositive);
  v.required("scale", training.scale, kPositive);
}

}  // namespace faultline::model

namespace faultline::inference {

/// What ranks need of it: lengths are drawn, and times judged, by the controller.
template <typename V>
void visitFields(V& v, Of<Serving> auto& serving) {
  v.required("batch", serving.batch, kPositive);
  v.required("prefill_tokens", serving.prefillTokens, kPositive);
  v.required("disaggregated", serving.disaggregated);
}

template <typename V>
void visitFields(V& v, Of<Request> auto& request) {
  v.required("id", request.id, kNotNegative);
  v.required("arrival", request.arrival, kNotNegative);
  v.required("prompt", request.prompt, kPositive);
  v.required("output", request.output, kPositive);
}

template <typename V>
void visitFields(V& v, Of<Arrivals> auto& arrivals) {
  v.required("qps", arrivals.qps, kNotNegative);
  v.required("requests", arrivals.requests);
}

}  // namespace faultline::inference

namespace faultline::scenario {

inline std::span<const EnumName<Place>> namesOf(Place /*which*/) {
  static const auto names = enumNames(std::array{Place::kOut, Place::kIn, Place::kBoth},
                                      [](Place one) { return name(one); });
  return names;
}
inline std::span<const EnumName<DataKind>> namesOf(DataKind /*which*/) {
  static const auto names = enumNames(std::array{DataKind::kIntegers, DataKind::kRandom},
                                      [](DataKind one) { return name(one); });
  return names;
}
inline std::span<const EnumName<TelemetryMode>> namesOf(TelemetryMode /*which*/) {
  static const auto names =
      enumNames(std::array{TelemetryMode::kOff, TelemetryMode::kNull, TelemetryMode::kOn},
                [](TelemetryMode one) { return name(one); });
  return names;
}

inline std::span<const EnumName<const WorkloadKind*>> namesOf(const WorkloadKind* /*which*/) {
  static const auto names = [] {
    std::vector<EnumName<const WorkloadKind*>> all;
    for (const WorkloadKind* const kind : workloadKinds()) all.push_back({kind, kind->name.data()});
    return all;
  }();
  return names;
}

template <typename V>
void visitFields(V& v, Of<Limits> auto& limits) {
  eachLimit(limits, [&](const char* key, auto& limit) {
    v.required(key, limit,
               &limit == static_cast<const void*>(&limits.chunk) ? kPositive : kNotNegative);
  });
}

template <typename V>
void visitFields(V& v, Of<Compute> auto& compute) {
  v.required("duration", compute.duration, kNotNegative);
  v.required("burn", compute.burn);
}

template <typename V>
void visitFields(V& v, Of<Gradient> auto& gradient) {
  v.required("size", gradient.size, kNotNegative);
  v.required("buckets", gradient.buckets, kPositive);
  v.required("dtype", gradient.dtype);
  v.required("data", gradient.data);
}

/// Of whole elements.
Status checkFields(const Gradient& gradient);

template <typename V>
void visitFields(V& v, Of<Sweep> auto& sweep) {
  v.required("operations", sweep.operations);
  v.required("sizes", sweep.sizes, kPositive);
  v.required("dtypes", sweep.dtypes);
  v.required("ops", sweep.ops);
  v.required("place", sweep.place);
  v.required("settle_calls", sweep.settleCalls, kNotNegative);
}

/// No list is empty.
Status checkFields(const Sweep& sweep);

template <typename V>
void visitFields(V& v, Of<Workload> auto& workload) {
  v.required("kind", workload.kind);
  v.required("iterations", workload.iterations, kNotNegative);
  v.required("warmup_iterations", workload.warmupIterations, kNotNegative);
  v.required("compute", workload.compute);
  v.required("gradient", workload.gradient);
  v.required("collective", workload.collective);
  v.required("training", workload.model);
  v.required("serving", workload.serving);
}

}  // namespace faultline::scenario

namespace faultline::workload {

template <typename V>
void visitFields(V& v, Of<RankConfig::Nic> auto& nic) {
  v.required("device", nic.device);
  v.required("address", nic.address);
}

template <typename V>
void visitFields(V& v, Of<ServerConfig> auto& server) {
  v.required("rates", server.rates);
  v.required("first_rate", server.firstRate, kNotNegative);
  v.required("rate_start", server.rateStart, kNotNegative);
  v.required("usual_prompt", server.usualPrompt, kPositive);
  v.required("usual_output", server.usualOutput, kPositive);
}

template <typename V>
void visitFields(V& v, Of<RankConfig> auto& config) {
  v.required("version", config.version);
  v.required("rank", config.rank, kNotNegative);
  v.required("size", config.size, kPositive);
  v.required("job_key", config.jobKey);
  v.required("nics", config.nics);
  v.required("management_address", config.managementAddress);
  v.required("rendezvous_address", config.rendezvousAddress);
  v.required("rendezvous_port", config.rendezvousPort);
  v.required("control_tos", config.controlTos, NumberRange{.least = 0, .most = 255});
  v.required("resilient", config.resilient);
  v.required("policy", config.policy);
  v.required("segments", config.segments, kPositive);
  v.required("algorithm", config.algorithm);
  v.required("planned", config.planned);
  v.required("schedule", config.schedule);
  v.required("limits", config.limits);
  v.required("telemetry", config.telemetry);
  v.required("io_threads", config.ioThreads, kNotNegative);
  v.required("workload", config.workload);
  v.required("own", config.own);
  v.required("server", config.server);
  v.required("seed", config.seed);
  v.required("shrink_patience", config.shrinkPatience, kNotNegative);
  v.required("exclude_after", config.excludeAfter, kNotNegative);
  v.required("checkpoint_every", config.checkpointEvery, kNotNegative);
  v.required("checkpoint_path", config.checkpointPath);
  v.required("corrupt_one_element", config.corruptOneElement);
}

/// What its fields must be to each other.
Status checkFields(const RankConfig& config);

}  // namespace faultline::workload

#include "harness/workload/rank_config.h"

#include <algorithm>

#include "base/json_schema.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/data.h"
#include "harness/workload/job_kind.h"
#include "harness/workload/rank_config_fields.h"
#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline {

Status model::checkFields(const DeviceCard& card) {
  if (card.efficiency > 0) return okStatus();
  return errorf(Code::kInvalidArgument, "efficiency: is nothing");
}

Status scenario::checkFields(const Gradient& gradient) {
  if (gradient.size % reduction::sizeOf(gradient.dtype) == 0) return okStatus();
  return errorf(Code::kInvalidArgument, "size: {} is not a whole number of elements",
                gradient.size);
}

Status scenario::checkFields(const Sweep& sweep) {
  for (const auto& [key, count] :
       {std::pair("operations", sweep.operations.size()), std::pair("sizes", sweep.sizes.size()),
        std::pair("dtypes", sweep.dtypes.size()), std::pair("ops", sweep.ops.size())}) {
    if (count == 0) return errorf(Code::kInvalidArgument, "{}: is an empty list", key);
  }
  return okStatus();
}

namespace workload {
namespace {

bool isAlgorithm(const RankConfig& config) {
  if (config.planned && config.algorithm == comm::CommunicatorOptions::kAnyAlgorithm) return true;
  return std::ranges::any_of(schedule::algorithms(), [&](const schedule::Algorithm& one) {
    return one.name == config.algorithm;
  });
}

/// Sums of integers are exact only up to so many ranks.
Status checkSums(const RankConfig& config) {
  const scenario::Workload& workload = config.workload;
  const std::optional<model::Training>& training = workload.model;
  const int summed = training ? std::max(training->parallel.data * training->parallel.expert,
                                         training->parallel.tensor)
                              : config.size;
  const auto type = training ? training->model.dtype : workload.gradient.dtype;
  const bool exact = workload.gradient.data == scenario::DataKind::kIntegers;
  if (summed > (exact ? maxExactRanks(type) : kMaxExactRanks)) {
    return errorf(Code::kInvalidArgument, "size: is out of range for exact sums of {}",
                  reduction::nameOf(type));
  }
  return okStatus();
}

/// What the workload's job says of it.
Status checkJob(const RankConfig& config) {
  const JobKind& job = jobKind(*config.workload.kind);
  if (job.make == nullptr && job.serve == nullptr) {
    return errorf(Code::kInvalidArgument, "workload.kind: has no ranks");
  }
  Status status;
  if (job.check == nullptr) return status;
  job.check(config, [&](const char* field, const std::string& why) {
    if (status.ok()) status = errorf(Code::kInvalidArgument, "{}: {}", field, why);
  });
  return status;
}

/// What has come in `own` becomes the workload's.
Status takeOwn(RankConfig& config) {
  const auto read = jobKind(*config.workload.kind).read;
  if (read == nullptr) {
    if (config.own.is_null()) return okStatus();
    return errorf(Code::kInvalidArgument,
                  "{}: expected null: a workload {} has no values of its own", JobKind::kOwnPath,
                  config.workload.kind->name);
  }
  RETURN_IF_ERROR(read(config.own, config.workload));
  config.own = nullptr;
  return okStatus();
}

}  // namespace

Status checkFields(const RankConfig& config) {
  const scenario::Workload& workload = config.workload;
  const auto refused = [](const char* why) { return Status(Code::kInvalidArgument, why); };
  const int instances = workload.serving ? workload.serving->instances() : 1;
  if (workload.model && workload.model->parallel.ranks() * instances != config.size) {
    return refused("size: is not the product of the degrees of parallelism");
  }
  RETURN_IF_ERROR(checkSums(config));
  if (config.rank >= config.size) return refused("rank: there are not so many");
  if (config.nics.empty()) return refused("nics: is an empty list");
  if (!isAlgorithm(config)) return refused("algorithm: is unknown");
  if (config.checkpointEvery > 0 && config.checkpointPath.empty()) {
    return refused("checkpoint_path: is needed for checkpoints");
  }
  return okStatus();
}

nlohmann::json toJson(const RankConfig& config) {
  nlohmann::json json = wire::toJson(config);
  const auto write = jobKind(*config.workload.kind).write;
  if (write != nullptr) json["own"] = write(config.workload);
  return json;
}

Result<RankConfig> rankConfigFromJson(const nlohmann::json& json) {
  RETURN_IF_ERROR(wire::checkVersion(json));
  RankConfig config;
  RETURN_IF_ERROR(
      (JsonReader<nlohmann::json, Strictness::kExact>::read(json, "configuration", config)));
  RETURN_IF_ERROR(takeOwn(config));
  RETURN_IF_ERROR(checkJob(config).withContext("configuration"));
  return config;
}

nlohmann::ordered_json rankConfigSchema() {
  auto schema = JsonSchemaOf<nlohmann::ordered_json, Strictness::kExact>::of(RankConfig{});
  auto own = nlohmann::ordered_json::array({{{"type", "null"}}});
  for (const scenario::WorkloadKind* const kind : scenario::workloadKinds()) {
    if (const auto of = jobKind(*kind).schema; of != nullptr) own.push_back(of());
  }
  schema["properties"]["own"] = {{"anyOf", std::move(own)}};
  return schema;
}

}  // namespace workload
}  // namespace faultline

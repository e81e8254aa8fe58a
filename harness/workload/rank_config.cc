#include "harness/workload/rank_config.h"

#include <algorithm>

#include "base/json_schema.h"
#include "harness/workload/data.h"
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
  const auto type = workload.serves() && training ? training->model.dtype : workload.gradient.dtype;
  const bool exact = workload.gradient.data == scenario::DataKind::kIntegers;
  if (summed > (exact ? maxExactRanks(type) : kMaxExactRanks)) {
    return errorf(Code::kInvalidArgument, "size: is out of range for exact sums of {}",
                  reduction::nameOf(type));
  }
  if (!workload.sweeps()) return okStatus();
  for (const scenario::SweepCell& cell : cellsOf(workload.collective)) {
    if (!scenario::reduces(cell.operation)) continue;
    if (config.size <= maxExactRanks(cell.dtype, cell.op)) continue;
    return errorf(Code::kInvalidArgument, "size: is out of range for an exact {} of {}",
                  reduction::nameOf(cell.op), reduction::nameOf(cell.dtype));
  }
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
  if (workload.serves() && !(workload.model && workload.serving && config.server)) {
    return refused("server: a server needs it, workload.training and workload.serving");
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

nlohmann::json toJson(const RankConfig& config) { return wire::toJson(config); }

Result<RankConfig> rankConfigFromJson(const nlohmann::json& json) {
  RETURN_IF_ERROR(wire::checkVersion(json));
  RankConfig config;
  RETURN_IF_ERROR(
      (JsonReader<nlohmann::json, Strictness::kExact>::read(json, "configuration", config)));
  return config;
}

nlohmann::ordered_json rankConfigSchema() {
  return JsonSchemaOf<nlohmann::ordered_json, Strictness::kExact>::of(RankConfig{});
}

}  // namespace workload
}  // namespace faultline

#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/job.h"
#include "harness/workload/rank_config.h"
#include "harness/workload/server.h"

namespace faultline::workload {

/// What a rank of ours does for a workload: either of the first two. Neither: it has no ranks.
struct JobKind {
  std::unique_ptr<Job> (*make)(const RankConfig& config) = nullptr;
  std::unique_ptr<Server> (*serve)(const RankConfig& config) = nullptr;  ///< `config` outlives it
  /// Tells what cannot be, by its field of the configuration. Null: nothing besides what is looked
  /// at for all.
  using Fail = std::function<void(const char* field, const std::string& why)>;
  void (*check)(const RankConfig& config, const Fail& fail) = nullptr;

  /// How the values of `scenario::Workload::own` reach ranks. Null, all three: it has none.
  nlohmann::json (*write)(const scenario::Workload& workload) = nullptr;
  /// kInvalidArgument, with the field's path, where one is missing, unknown or out of range.
  Status (*read)(const nlohmann::json& values, scenario::Workload& workload) = nullptr;
  nlohmann::ordered_json (*schema)() = nullptr;
  /// Of the values, for messages.
  static constexpr const char* kOwnPath = "configuration.own";
};

/// That of the workload; one without ranks for a kind that is not in scenario::workloadKinds().
const JobKind& jobKind(const scenario::WorkloadKind& kind);

}  // namespace faultline::workload

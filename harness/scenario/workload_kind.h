#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/parameter.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

/// The one table of workloads, as far as the language goes: reader, JSON, schema, `faultline list`
/// and `describe` follow from it.
namespace faultline::scenario {

/// What a section is read from: the whole document, its scalars by their paths
/// (RecordReader::read), and the cluster, which is read already.
struct WorkloadReading {
  const Node& root;
  const Parameters& values;
  const Cluster& cluster;
  Findings& findings;
};

struct WorkloadKind {
  std::string_view name;
  std::string_view summary;                ///< one sentence
  std::span<const std::string_view> keys;  ///< that it has of `workload`, besides `kind`
  /// Everything but kind, iterations and time, which are read before.
  void (*read)(const WorkloadReading& reading, Workload& workload);
  /// What is read again as the same.
  nlohmann::ordered_json (*write)(const Workload& workload);
};

/// In the order in which they are listed; the first is what a scenario is taken for whose kind is
/// none.
std::span<const WorkloadKind> workloadKinds();
std::span<const std::string_view> workloadKindNames();

const WorkloadKind& workloadKind(std::string_view name);

/// Whether a workload of this kind has this key of `workload`.
bool hasWorkloadKey(std::string_view kind, std::string_view key);

}  // namespace faultline::scenario

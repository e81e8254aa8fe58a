#include "harness/scenario/workload_kind.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "harness/scenario/workload_list.h"

namespace faultline::scenario {

#define FAULTLINE_DECLARED(name) extern const WorkloadKind k##name##Workload;
FAULTLINE_WORKLOADS(FAULTLINE_DECLARED)
#undef FAULTLINE_DECLARED

namespace {

#define FAULTLINE_ROW(name) &k##name##Workload,
constexpr std::array kKinds{FAULTLINE_WORKLOADS(FAULTLINE_ROW)};
#undef FAULTLINE_ROW

}  // namespace

std::span<const WorkloadKind* const> workloadKinds() { return kKinds; }

std::span<const std::string_view> workloadKindNames() {
  static const auto kNames = [] {
    std::array<std::string_view, kKinds.size()> names{};
    std::ranges::transform(kKinds, names.begin(), &WorkloadKind::name);
    return names;
  }();
  return kNames;
}

const WorkloadKind* usualWorkloadKind() { return kKinds.front(); }

const WorkloadKind* findWorkloadKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &WorkloadKind::name);
  return found == kKinds.end() ? nullptr : *found;
}

std::string_view workloadWith(bool WorkloadKind::*property, bool value) {
  const auto* const found = std::ranges::find(kKinds, value, property);
  return found == kKinds.end() ? std::string_view() : (*found)->name;
}

bool hasWorkloadKey(const WorkloadKind& kind, std::string_view key) {
  return key == "kind" || std::ranges::count(kind.keys, key) > 0;
}

Placement placementOf(const Scenario& scenario) {
  const WorkloadKind& kind = *scenario.workload.kind;
  if (kind.placement != nullptr) return kind.placement(scenario);
  Placement placement{.perNode = scenario.cluster.ranksPerNode};
  placement.nodes.resize(static_cast<std::size_t>(scenario.cluster.nodes));
  std::iota(placement.nodes.begin(), placement.nodes.end(), 0);
  return placement;
}

}  // namespace faultline::scenario

#include "harness/analysis/slow_rails.h"

#include <algorithm>
#include <limits>

#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::run {
namespace {

// A link that has less than this share left, well below what is called degraded
// (channel::Degradation::kShare), is slow for everybody.
constexpr double kFoundBelow = 0.6;
constexpr double kUnderWayMs = 100;

}  // namespace

int ranksPerNode(const reports::ScenarioResult& result) {
  const auto cluster = result.scenario.find("cluster");
  if (cluster == result.scenario.end() || !cluster->is_object()) return 1;
  return std::max(1, cluster->value("ranks_per_node", 1));
}

bool slowsLink(const reports::AppliedFault& fault) {
  const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
  return kind != nullptr && kind->slows;
}

bool mustBeFoundSlow(const reports::AppliedFault& fault) {
  const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
  if (kind == nullptr || !kind->slows || !fault.target.rail) return false;
  const auto parameters = injector::FaultParameters::parse(*kind, fault.parameters);
  if (!parameters.ok()) return false;
  const double lasted = fault.end_ms.value_or(fault.start_ms) - fault.start_ms;
  const auto losses = kind->damage(
      *parameters, /*rate=*/0,
      duration_cast<Duration>(std::chrono::duration<double, std::milli>(std::max(0.0, lasted))));
  return std::ranges::any_of(losses, [](const injector::LinkLoss& loss) {
    return std::max(loss.tx, loss.rx) > 1 - kFoundBelow;
  });
}

bool explains(const reports::AppliedFault& fault, const reports::Degradation& degradation,
              int perNode) {
  const auto& [node, rail, rank, text, peer] = fault.target;
  const bool its =
      !node || *node == degradation.rank / perNode || *node == degradation.peer / perNode;
  const double end = fault.end_ms.value_or(std::numeric_limits<double>::infinity());
  return slowsLink(fault) && rail == degradation.rail && its &&
         degradation.at_ms >= fault.start_ms && degradation.at_ms <= end + kUnderWayMs;
}

SlowStrikes slowStrikes(const reports::Run& run, int perNode) {
  SlowStrikes strikes;
  for (std::size_t index = 0; index < run.faults.size(); ++index) {
    const reports::AppliedFault& fault = run.faults[index];
    const bool proved = std::ranges::any_of(run.evidence, [&](const reports::Evidence& evidence) {
      return evidence.fault == static_cast<int>(index) && evidence.ok;
    });
    if (!proved || !mustBeFoundSlow(fault)) continue;
    ++strikes.due;
    strikes.missed += std::ranges::none_of(run.degradations, [&](const auto& degradation) {
      return explains(fault, degradation, perNode);
    });
  }
  return strikes;
}

int unexplainedDegradations(const reports::Run& run, int perNode) {
  return static_cast<int>(std::ranges::count_if(run.degradations, [&](const auto& degradation) {
    return std::ranges::none_of(
        run.faults, [&](const auto& fault) { return explains(fault, degradation, perNode); });
  }));
}

}  // namespace faultline::run

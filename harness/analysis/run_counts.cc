#include "harness/analysis/run_counts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "harness/analysis/speed_bound.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {

int distinctIterations(const reports::Run& run) {
  std::set<int> indexes;
  for (const reports::Iteration& iteration : run.iterations) indexes.insert(iteration.index);
  return static_cast<int>(indexes.size());
}

std::optional<int> iterationsLeftUndone(const reports::ScenarioResult& result,
                                        const reports::Run& run) {
  std::optional<int> all;
  for (const reports::Run& other : result.runs) {
    if (completed(other)) all = std::max(all.value_or(0), distinctIterations(other));
  }
  const auto workload = result.scenario.find("workload");
  const bool known = workload != result.scenario.end() && workload->is_object();
  const scenario::WorkloadKind* const kind =
      known ? scenario::findWorkloadKind(workload->value("kind", std::string())) : nullptr;
  // Of calls it is the number for each combination.
  const bool told = kind != nullptr && !kind->hasCells && !workload->contains("time") &&
                    workload->contains("iterations");
  if (told) all = std::max(all.value_or(0), workload->value("iterations", 0));
  if (!all) return std::nullopt;
  return std::max(0, *all - distinctIterations(run));
}

std::size_t distinctErrors(const reports::Run& run) {
  std::set<std::string> words;
  for (const reports::RankError& error : run.errors) words.insert(error.message);
  return words.size();
}

std::size_t failoversPerConnection(const reports::Run& run) {
  std::map<std::tuple<int, int, int>, std::size_t> times;
  std::size_t most = 0;
  for (const auto* failovers : {&run.failovers, &run.idle_failovers}) {
    for (const reports::Failover& failover : *failovers) {
      most = std::max(most, ++times[{failover.rank, failover.peer, failover.rail}]);
    }
  }
  return most;
}

std::vector<double> deliveriesAfterReturn(const reports::Run& run, int perNode) {
  std::vector<double> times;
  for (const reports::Failover& failover : run.failovers) {
    if (!failover.detected_ms || !failover.resumed_ms) continue;
    std::optional<double> returned;
    for (const reports::AppliedFault& fault : run.faults) {
      const std::optional<int>& node = fault.target.node;
      const bool its = node == failover.rank / perNode || node == failover.peer / perNode;
      if (!its || !fault.target.rail || !fault.end_ms) continue;
      if (*fault.end_ms < *failover.detected_ms || *fault.end_ms > *failover.resumed_ms) continue;
      returned = std::min(returned.value_or(*fault.end_ms), *fault.end_ms);
    }
    if (returned) times.push_back(*failover.resumed_ms - *returned);
  }
  return times;
}

std::size_t planChanges(const reports::Run& run) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> epochs;
  std::set<std::uint32_t> communicators;
  for (const reports::AppliedPlan& plan : run.plans) {
    epochs.emplace(plan.communicator, plan.epoch);
    communicators.insert(plan.communicator);
  }
  return epochs.size() - communicators.size();
}

}  // namespace faultline::run

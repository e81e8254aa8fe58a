#include "harness/analysis/metric_scope.h"

#include <algorithm>

namespace faultline::run {

MetricScope scopeOf(const reports::ScenarioResult& result, const std::string& strategy) {
  MetricScope scope{result, nullptr, {}, strategy.empty()};
  for (const reports::Run& run : result.runs) {
    if (scope.whole || run.strategy == strategy) scope.runs.push_back(&run);
  }
  const auto faulted = [](const reports::Run* run) { return run->faulted; };
  if (!scope.whole && std::any_of(scope.runs.begin(), scope.runs.end(), faulted)) {
    std::erase_if(scope.runs, [&](const reports::Run* run) { return !faulted(run); });
  }
  for (const reports::Summary& row : result.summary) {
    if (!scope.whole && row.strategy == strategy) scope.row = &row;
  }
  return scope;
}

bool cutShort(const reports::Run& run) {
  return run.status == reports::RunStatus::kFailed ||
         (run.status == reports::RunStatus::kHung && run.restarts.empty());
}

const reports::Run* firstCutShort(const MetricScope& scope) {
  const auto found =
      std::ranges::find_if(scope.runs, [](const auto* run) { return cutShort(*run); });
  return found == scope.runs.end() ? nullptr : *found;
}

bool evidenceIsComplete(const reports::Run& run) {
  if (!run.faulted) return true;
  if (run.faults.empty()) return false;
  for (std::size_t index = 0; index < run.faults.size(); ++index) {
    if (run.faults[index].hit && !run.faults[index].hit->ok) return false;
    const auto about = [&](const reports::Evidence& e) {
      return e.fault == static_cast<int>(index);
    };
    if (std::none_of(run.evidence.begin(), run.evidence.end(), about)) return false;
  }
  return std::all_of(run.evidence.begin(), run.evidence.end(),
                     [](const reports::Evidence& evidence) { return evidence.ok; });
}

}  // namespace faultline::run

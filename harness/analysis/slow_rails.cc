#include "harness/analysis/slow_rails.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

namespace faultline::run {
namespace {

constexpr const char* kThrottle = "throttle";
constexpr double kFoundBelowPercent = 60;
constexpr double kUnderWayMs = 100;

}  // namespace

int ranksPerNode(const reports::ScenarioResult& result) {
  const auto cluster = result.scenario.find("cluster");
  if (cluster == result.scenario.end() || !cluster->is_object()) return 1;
  return std::max(1, cluster->value("ranks_per_node", 1));
}

bool mustBeFoundSlow(const reports::AppliedFault& fault) {
  const auto rate = fault.parameters.find("rate");
  if (fault.kind != kThrottle || !fault.target.rail || rate == fault.parameters.end()) return false;
  const std::string& text = rate->second;
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool isShare = error == std::errc() && end != text.data() + text.size() && *end == '%';
  return isShare && percent < kFoundBelowPercent;
}

bool explains(const reports::AppliedFault& fault, const reports::Degradation& degradation,
              int perNode) {
  const auto& [node, rail, rank, text, peer] = fault.target;
  const bool its =
      !node || *node == degradation.rank / perNode || *node == degradation.peer / perNode;
  const double end = fault.end_ms.value_or(std::numeric_limits<double>::infinity());
  return fault.kind == kThrottle && rail == degradation.rail && its &&
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

#include "harness/scenario/expectation_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/expectation_values.h"
#include "harness/scenario/metric_table.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/bootstrap.h"
#include "harness/stats/overhead.h"

namespace faultline::scenario {

namespace {

/// The same of metrics of cells and plans; empty for others.
std::string whyNoCellsOrPlans(const MetricName& name, const Scenario& scenario) {
  const std::string_view metric = name.metric;
  if (metric.starts_with(kCellMetrics) && !scenario.workload.kind->hasCells) {
    return fmt::format("{}: only a workload of kind {} has cells", metric,
                       workloadWith(&WorkloadKind::hasCells));
  }
  if (isOfRequests(metric) && !scenario.workload.kind->hasRequests) {
    return fmt::format("{}: only a workload of kind {} has requests", metric,
                       workloadWith(&WorkloadKind::hasRequests));
  }
  if (!metric.starts_with(kPlanMetrics)) return "";
  const Strategy* const strategy = scenario.find(name.strategy);
  const baseline::StrategySpec* const kind =
      strategy == nullptr ? nullptr : baseline::findStrategy(strategy->kind());
  if (kind == nullptr || kind->planned()) return "";
  return fmt::format("{}: {} makes no plans", metric, kind->name);
}

/// The same of metrics that only programs that are not ours have, or cannot have; empty for others.
std::string whyNotOfPrograms(const MetricName& name, const Scenario& scenario) {
  const std::string_view path = name.metric;
  const bool foreign = !scenario.workload.kind->runsRanks;
  const Metric* const metric = findMetric(path, !name.strategy.empty());
  if (metric == nullptr) return "";
  const bool told = metric->path == kAnyProgramMetric;
  if (!foreign && (told || path == "exit_code")) {
    return fmt::format("{}: only programs of a workload of kind {} have it", path,
                       workloadWith(&WorkloadKind::runsRanks, false));
  }
  if (foreign && !isKnownOfPrograms(*metric)) {
    return fmt::format("{}: nobody sees that in programs that are not ours", path);
  }
  const bool rebuilds = path.starts_with(kRebuildMetrics);
  if (rebuilds || (foreign && path.starts_with(kShrinkMetrics))) {
    const std::string_view mode = rebuilds ? baseline::kAbortReinit : baseline::kShrinkMode;
    const Strategy* const row = scenario.find(name.strategy);
    const bool has = row != nullptr && row->options.has(baseline::kMode) &&
                     row->options.get<std::string>(baseline::kMode) == mode;
    if (!has) {
      return fmt::format("{}: only a row of '{}' with 'mode: {}' tells that", path,
                         baseline::namesOf([](const auto& one) { return one.setsUpNccl; }), mode);
    }
  }
  const auto whyUntold = scenario.workload.kind->whyUntold;
  return whyUntold == nullptr ? "" : whyUntold(path, scenario.workload);
}

std::string whyMeaningless(const MetricName& name, const Scenario& scenario) {
  const std::string& metric = name.metric;
  const Strategy* const row = scenario.find(name.strategy);
  if (row != nullptr && baseline::isModelled(row->kind())) {
    return fmt::format(
        "{} is modelled: it follows from its parameters, and nothing that is measured could make "
        "this hold or fail",
        name.strategy);
  }
  if (std::string why = whyNotOfPrograms(name, scenario); !why.empty()) return why;
  const bool random = scenario.workload.gradient.data == DataKind::kRandom;
  if (random && (metric == "wrong_elements" || metric == "checked_elements")) {
    return fmt::format(
        "{}: with 'data: random' no element is compared: write 'digest_matches == true'", metric);
  }
  if (!random && metric == "digest_matches") {
    return fmt::format(
        "{}: with 'data: integers' every element is compared and there are no digests: write "
        "'wrong_elements == 0'",
        metric);
  }
  const bool exposed = metric.starts_with("exposed_overhead_pct");
  if (exposed && !scenario.workload.model) {
    return fmt::format("{}: only jobs that follow from a 'model' know what is exposed", metric);
  }
  if (name.strategy == baseline::kReferenceRow &&
      metric.find("overhead_pct") != std::string::npos) {
    return fmt::format("{} is what overhead is measured against: it has none of its own",
                       baseline::kReferenceRow);
  }
  if (std::string why = whyNoCellsOrPlans(name, scenario); !why.empty()) return why;
  const auto blocks = static_cast<std::size_t>(scenario.repeat);
  const bool interval = metric.find("overhead_pct.ci95") != std::string::npos ||
                        metric == "exposed_overhead_pct.half_width";
  if (interval && blocks < stats::kMinBlocksForInterval) {
    return fmt::format("{}: an interval needs 'repeat' to be at least {}, not {}", metric,
                       stats::kMinBlocksForInterval, blocks);
  }
  const bool noise = metric.starts_with("noise.") || metric.ends_with("overhead_pct.at_most") ||
                     metric == "overhead_pct.distinguishable";
  if (noise && scenario.secondFaultFree() == nullptr) {
    return fmt::format(
        "{}: noise is seen between two equal runs: add '{{{}: {{as: again}}}}' to 'strategies'",
        metric, baseline::kReferenceRow);
  }
  if (metric == "noise.drift_pct" && scenario.workload.kind->hasRequests) {
    return fmt::format(
        "{}: each block of a server has other arrivals, so that its runs are not equal: "
        "'noise: {{drift_check: N}}' looks at drift",
        metric);
  }
  if (noise && blocks < stats::kMinPairsForBand) {
    return fmt::format("{}: noise needs 'repeat' to be at least {}, not {}", metric,
                       stats::kMinPairsForBand, blocks);
  }
  return whyNeverAValue(name, scenario);
}

}  // namespace

std::string whyMeaningless(const Expectation& expectation, const Scenario& scenario) {
  for (const MetricName& name : expectation.metrics()) {
    if (std::string why = whyMeaningless(name, scenario); !why.empty()) return why;
  }
  return "";
}

}  // namespace faultline::scenario

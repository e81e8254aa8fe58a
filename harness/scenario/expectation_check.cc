#include "harness/scenario/expectation_check.h"

#include <fmt/format.h>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/metric_table.h"
#include "harness/stats/bootstrap.h"
#include "harness/stats/overhead.h"

namespace faultline::scenario {

namespace {

/// The same of metrics of cells and plans; empty for others.
std::string whyNoCellsOrPlans(const Expectation& expectation, const Scenario& scenario) {
  const std::string_view metric = expectation.metric;
  if (metric.starts_with(kCellMetrics) && !scenario.workload.sweeps()) {
    return fmt::format("{}: only a workload of kind collective has cells", metric);
  }
  if (!metric.starts_with(kPlanMetrics)) return "";
  const Strategy* const strategy = scenario.find(expectation.strategy);
  const baseline::StrategySpec* const kind =
      strategy == nullptr ? nullptr : baseline::findStrategy(strategy->kind());
  if (kind == nullptr || kind->planned()) return "";
  return fmt::format("{}: {} makes no plans", metric, kind->name);
}

}  // namespace

std::string whyMeaningless(const Expectation& expectation, const Scenario& scenario) {
  const std::string& metric = expectation.metric;
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
  if (expectation.strategy == baseline::kFaultFree && metric.starts_with("overhead_pct")) {
    return fmt::format("{} is what overhead is measured against: it has none of its own",
                       baseline::kFaultFree);
  }
  if (std::string why = whyNoCellsOrPlans(expectation, scenario); !why.empty()) return why;
  const auto blocks = static_cast<std::size_t>(scenario.repeat);
  if (metric.starts_with("overhead_pct.ci95") && blocks < stats::kMinBlocksForInterval) {
    return fmt::format("{}: an interval needs 'repeat' to be at least {}, not {}", metric,
                       stats::kMinBlocksForInterval, blocks);
  }
  const bool noise = metric.starts_with("noise.") || metric == "overhead_pct.at_most" ||
                     metric == "overhead_pct.distinguishable";
  if (noise && scenario.secondFaultFree() == nullptr) {
    return fmt::format(
        "{}: noise is seen between two equal runs: add '{{{}: {{as: again}}}}' to 'strategies'",
        metric, baseline::kFaultFree);
  }
  if (noise && blocks < stats::kMinPairsForBand) {
    return fmt::format("{}: noise needs 'repeat' to be at least {}, not {}", metric,
                       stats::kMinPairsForBand, blocks);
  }
  return "";
}

}  // namespace faultline::scenario

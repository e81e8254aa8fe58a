#include "harness/scenario/expectation_check.h"

#include <fmt/format.h>

#include "harness/baseline/strategy_table.h"
#include "harness/stats/bootstrap.h"
#include "harness/stats/overhead.h"

namespace faultline::scenario {

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

#include "harness/run/drift.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "harness/run/summary.h"
#include "harness/stats/drift.h"

namespace faultline::run {
namespace {

std::string whyVoid(const stats::Drift& drift, const scenario::NoiseLimits& limits) {
  if (std::abs(drift.percent) > limits.driftPercent) {
    const std::string chance = drift.p ? fmt::format(" (p = {:.2g})", *drift.p) : "";
    return fmt::format(
        "the machine was too noisy: equal runs took {:.1f} % {} time after all others than before "
        "them{}, and above {:.3g} % no speed means anything",
        std::abs(drift.percent), drift.percent > 0 ? "more" : "less", chance, limits.driftPercent);
  }
  if (drift.spreadPercent && *drift.spreadPercent > limits.bandPercent) {
    return fmt::format(
        "the machine was too noisy: equal runs right after each other differed by up to {:.1f} %, "
        "and above {:.3g} % no speed means anything",
        *drift.spreadPercent, limits.bandPercent);
  }
  return "";
}

}  // namespace

std::optional<reports::Drift> driftOf(const scenario::Scenario& scenario,
                                      std::span<const reports::Run> runs) {
  const scenario::NoiseLimits& limits = scenario.noise;
  if (limits.driftRuns == 0) return std::nullopt;
  std::vector<double> before;
  std::vector<double> after;
  for (const reports::Run& run : runs) {
    const auto speed = speedOf(run);
    if (run.strategy != limits.driftRow.name || !speed) continue;
    (run.block < limits.driftRuns ? before : after).push_back(*speed);
  }
  reports::Drift result{.before = static_cast<int>(before.size()),
                        .after = static_cast<int>(after.size()),
                        .drift_pct = {},
                        .spread_pct = {},
                        .p = {},
                        .limit_pct = limits.driftPercent,
                        .void_because = {}};
  const auto drift = stats::drift(before, after);
  if (!drift) {
    result.void_because = fmt::format(
        "nobody knows whether the machine changed: of {} fault-free runs before all others {} have "
        "a speed, of those after them {}",
        limits.driftRuns, before.size(), after.size());
    return result;
  }
  result.drift_pct = drift->percent;
  result.spread_pct = drift->spreadPercent;
  result.p = drift->p;
  result.void_because = whyVoid(*drift, limits);
  return result;
}

}  // namespace faultline::run

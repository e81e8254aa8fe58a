#include "harness/analysis/drift_check.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "harness/analysis/latency_rows.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/stats/drift.h"

namespace faultline::run {
namespace {

std::string whyVoid(const stats::Drift& drift, const scenario::NoiseLimits& limits) {
  if (std::abs(drift.percent) > limits.driftPercent) {
    const std::string chance = drift.p ? fmt::format(" (p = {:.2g})", *drift.p) : "";
    return fmt::format(
        "the machine was too noisy: equal runs took {:.1f} % {} time {}{}, and above {:.3g} % no "
        "speed means anything",
        std::abs(drift.percent), drift.percent > 0 ? "more" : "less",
        limits.acrossBlocks ? "in the last blocks than in the first"
                            : "after all others than before them",
        chance, limits.driftPercent);
  }
  if (drift.spreadPercent && *drift.spreadPercent > limits.bandPercent) {
    return fmt::format(
        "the machine was too noisy: equal runs {} differed by up to {:.1f} %, and above {:.3g} % "
        "no speed means anything",
        limits.acrossBlocks ? "of the same half of the blocks" : "right after each other",
        *drift.spreadPercent, limits.bandPercent);
  }
  return "";
}

}  // namespace

std::optional<reports::Drift> driftOf(const scenario::Scenario& scenario,
                                      std::span<const reports::Run> runs) {
  const scenario::NoiseLimits& limits = scenario.noise;
  if (limits.driftRuns == 0 && !limits.acrossBlocks) return std::nullopt;
  const std::string_view row = limits.acrossBlocks ? baseline::kReferenceRow : limits.driftRow.name;
  const int on_each_side = limits.acrossBlocks ? scenario.repeat / 2 : limits.driftRuns;
  const int first_after = limits.acrossBlocks ? scenario.repeat - on_each_side : on_each_side;
  const int rates = pooledRates(runs);
  std::vector<double> before;
  std::vector<double> after;
  for (const reports::Run& run : runs) {
    const auto speed = speedOf(run, rates);
    if (run.strategy != row || !speed) continue;
    if (run.block < on_each_side) before.push_back(*speed);
    if (run.block >= first_after) after.push_back(*speed);
  }
  reports::Drift result{.before = static_cast<int>(before.size()),
                        .after = static_cast<int>(after.size()),
                        .across_blocks = limits.acrossBlocks,
                        .drift_pct = {},
                        .spread_pct = {},
                        .p = {},
                        .limit_pct = limits.driftPercent,
                        .void_because = {}};
  const auto drift = stats::drift(before, after);
  if (!drift) {
    result.void_because = fmt::format(
        "nobody knows whether the machine changed: of {} fault-free runs {} {} have a speed, of "
        "those {} {}",
        on_each_side, limits.acrossBlocks ? "of the first blocks" : "before all others",
        before.size(), limits.acrossBlocks ? "of the last" : "after them", after.size());
    return result;
  }
  result.drift_pct = drift->percent;
  result.spread_pct = drift->spreadPercent;
  result.p = drift->p;
  result.void_because = whyVoid(*drift, limits);
  return result;
}

}  // namespace faultline::run

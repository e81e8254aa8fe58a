#include "harness/run/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/baseline/strategy_table.h"
#include "harness/run/bound.h"
#include "harness/run/summary.h"
#include "harness/stats/drift.h"
#include "harness/stats/overhead.h"

namespace faultline::run {
namespace {

std::string whyVoid(const stats::NoiseBand& band, const std::optional<double>& drift,
                    const scenario::NoiseLimits& limits) {
  if (band.isVoid(limits.bandPercent)) {
    return fmt::format(
        "the machine was too noisy: equal runs differed by up to {:.1f} %, and above {:.3g} % no "
        "speed means anything",
        band.percent, limits.bandPercent);
  }
  if (drift && std::abs(*drift) > limits.driftPercent) {
    return fmt::format(
        "the machine changed: equal runs took {:.1f} % {} time at the end than at the beginning",
        std::abs(*drift), *drift > 0 ? "more" : "less");
  }
  return "";
}

}  // namespace

std::optional<reports::Noise> noiseOf(const scenario::Scenario& scenario,
                                      std::span<const reports::Run> runs, std::uint64_t seed) {
  const scenario::Strategy* const second = scenario.secondFaultFree();
  if (second == nullptr) return std::nullopt;
  const std::vector<stats::Block> pairs = blocksOf(runs, second->name);
  const auto band = stats::noiseBand(pairs, seed);
  if (!band) return std::nullopt;
  std::vector<double> speeds;
  for (const reports::Run& run : runs) {
    const bool equal = run.strategy == baseline::kFaultFree || run.strategy == second->name;
    if (const auto speed = speedOf(run); equal && speed) speeds.push_back(*speed);
  }
  const auto drift = stats::driftPercent(speeds);
  return reports::Noise{second->name,  static_cast<int>(pairs.size()),
                        band->percent, band->medianPercent,
                        drift,         whyVoid(*band, drift, scenario.noise)};
}

}  // namespace faultline::run

#include "harness/analysis/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/analysis/latency_rows.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/drift.h"
#include "harness/stats/overhead.h"

namespace faultline::run {
namespace {

/// The widest band of the rates that fault_free keeps up with.
std::optional<double> latencyBandOf(const scenario::Scenario& scenario,
                                    std::span<const reports::Run> runs, std::uint64_t seed,
                                    std::optional<double> reports::ServedRequest::*which) {
  std::optional<double> widest;
  for (int rate = 0; rate < ratesKeptUp(runs); ++rate) {
    const auto band = latencyBand(scenario, runs, rate, which, seed);
    if (band) widest = std::max(widest.value_or(0), band->percent);
  }
  return widest;
}

std::string whyLatenciesVoid(const reports::Noise& noise, double limit) {
  for (const auto& [what, band] :
       {std::pair{"TTFT", noise.ttft_band_pct}, std::pair{"TPOT", noise.tpot_band_pct}}) {
    if (!band || *band <= limit) continue;
    return fmt::format(
        "the machine was too noisy: the median {} of equal runs differed by up to {:.1f} %, and "
        "above {:.3g} % no latency means anything",
        what, *band, limit);
  }
  return "";
}

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
  const int rates = pooledRates(runs);
  std::vector<double> speeds;
  for (const reports::Run& run : runs) {
    const bool equal = run.strategy == baseline::kReferenceRow || run.strategy == second->name;
    if (const auto speed = speedOf(run, rates); equal && speed) speeds.push_back(*speed);
  }
  // Each block of a server has other arrivals, so runs of different blocks are not equal.
  const auto drift =
      scenario.workload.kind->hasRequests ? std::nullopt : stats::driftPercent(speeds);
  reports::Noise noise{second->name,  static_cast<int>(pairs.size()),
                       band->percent, band->medianPercent,
                       drift,         whyVoid(*band, drift, scenario.noise)};
  if (!scenario.workload.kind->hasRequests) return noise;
  using reports::ServedRequest;
  noise.ttft_band_pct = latencyBandOf(scenario, runs, seed, &ServedRequest::ttft_ms);
  noise.tpot_band_pct = latencyBandOf(scenario, runs, seed, &ServedRequest::tpot_ms);
  if (noise.void_because.empty()) {
    noise.void_because = whyLatenciesVoid(noise, scenario.noise.latencyPercent);
  }
  return noise;
}

std::string whyNoiseUnknown(const scenario::Scenario& scenario,
                            std::span<const reports::Run> runs) {
  const scenario::Strategy* const second = scenario.secondFaultFree();
  if (second == nullptr) return "";
  const std::size_t pairs = blocksOf(runs, second->name).size();
  if (pairs >= stats::kMinPairsForBand) return "";
  return fmt::format(
      "noise not checked: {} pairs of equal runs (fault_free, {}), and {} are needed for what they "
      "differ by ('repeat')",
      pairs, second->name, stats::kMinPairsForBand);
}

}  // namespace faultline::run

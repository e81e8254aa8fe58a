#include "harness/stats/overhead.h"

#include <cmath>

#include "harness/stats/quantile.h"

namespace faultline::stats {
namespace {

constexpr double kPercent = 100;
constexpr double kBandQuantile = 0.95;

bool usable(double throughput) { return std::isfinite(throughput) && throughput > 0; }

}  // namespace

std::optional<double> overheadPercent(const Block& block) {
  if (!usable(block.reference) || !usable(block.measured)) return std::nullopt;
  return (block.reference / block.measured - 1) * kPercent;
}

Overhead overhead(std::span<const Block> blocks, std::uint64_t seed) {
  Overhead result;
  for (const Block& block : blocks) {
    if (const auto percent = overheadPercent(block)) result.perBlock.push_back(*percent);
  }
  result.n = result.perBlock.size();
  result.median = median(result.perBlock);
  result.interval95 = medianInterval95(result.perBlock, seed);
  return result;
}

std::optional<NoiseBand> noiseBand(std::span<const Block> pairs) {
  std::vector<double> differences;
  for (const Block& pair : pairs) {
    if (const auto percent = overheadPercent(pair)) differences.push_back(std::abs(*percent));
  }
  if (differences.size() < kMinPairsForBand) return std::nullopt;
  return NoiseBand{*quantile(differences, kBandQuantile)};
}

}  // namespace faultline::stats

#include "harness/stats/overhead.h"

#include <algorithm>
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

std::optional<NoiseBand> noiseBand(std::span<const Block> pairs, std::uint64_t seed) {
  const Overhead difference = overhead(pairs, seed);
  if (difference.n < kMinPairsForBand || !difference.interval95) return std::nullopt;
  std::vector<double> sizes;
  for (const double percent : difference.perBlock) sizes.push_back(std::abs(percent));
  return NoiseBand{
      *quantile(sizes, kBandQuantile),
      std::max(std::abs(difference.interval95->low), std::abs(difference.interval95->high))};
}

bool distinguishable(double median, const Interval& interval95, const NoiseBand& band) {
  const bool outside = std::abs(median) > band.medianPercent;
  return outside && (interval95.low > 0 || interval95.high < 0);
}

double atMost(const Interval& interval95, const NoiseBand& band) {
  return std::max(interval95.high, band.medianPercent);
}

}  // namespace faultline::stats

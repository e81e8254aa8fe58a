#include "harness/stats/overhead.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/random.h"
#include "harness/stats/quantile.h"

namespace faultline::stats {
namespace {

constexpr double kPercent = 100;
constexpr double kBandQuantile = 0.95;

bool usable(double throughput) { return std::isfinite(throughput) && throughput > 0; }

/// Each resample sorts all samples: a quarter of those of medians, which moves the ends of the
/// interval by some percent of its width between seeds.
constexpr int kTailResamples = 1000;

/// Of these blocks, without an interval.
std::optional<TailOverhead> p95Of(std::span<const SampleBlock* const> blocks) {
  std::vector<double> reference;
  std::vector<double> measured;
  for (const SampleBlock* block : blocks) {
    reference.insert(reference.end(), block->reference.begin(), block->reference.end());
    measured.insert(measured.end(), block->measured.begin(), block->measured.end());
  }
  const auto before = quantile(reference, kBandQuantile);
  const auto now = quantile(measured, kBandQuantile);
  if (!before || !now || !usable(*before) || !std::isfinite(*now)) return std::nullopt;
  return TailOverhead{.n = std::min(reference.size(), measured.size()),
                      .percent = (*now / *before - 1) * kPercent,
                      .interval95 = {}};
}

}  // namespace

std::optional<double> overheadPercent(const Block& block) {
  if (!usable(block.reference) || !usable(block.measured)) return std::nullopt;
  return (block.reference / block.measured - 1) * kPercent;
}

Overhead overheadOf(std::vector<double> percents, std::uint64_t seed) {
  Overhead result;
  result.n = percents.size();
  result.median = median(percents);
  result.interval95 = medianInterval95(percents, seed);
  result.perBlock = std::move(percents);
  return result;
}

Overhead overhead(std::span<const Block> blocks, std::uint64_t seed) {
  std::vector<double> percents;
  for (const Block& block : blocks) {
    if (const auto percent = overheadPercent(block)) percents.push_back(*percent);
  }
  return overheadOf(std::move(percents), seed);
}

std::optional<TailOverhead> p95Overhead(std::span<const SampleBlock> blocks, std::uint64_t seed) {
  std::vector<const SampleBlock*> usable_blocks;
  for (const SampleBlock& block : blocks) {
    if (!block.reference.empty() && !block.measured.empty()) usable_blocks.push_back(&block);
  }
  const auto whole = p95Of(usable_blocks);
  if (!whole || whole->n < kMinSamplesForP95) return std::nullopt;
  TailOverhead result = *whole;
  if (usable_blocks.size() < kMinBlocksForInterval) return result;
  Random random(seed);
  std::vector<double> drawn;
  std::vector<const SampleBlock*> resample(usable_blocks.size());
  for (int i = 0; i < kTailResamples; ++i) {
    for (const SampleBlock*& block : resample) {
      block = usable_blocks[random.below(usable_blocks.size())];
    }
    if (const auto one = p95Of(resample)) drawn.push_back(one->percent);
  }
  const auto low = quantile(drawn, (1 - kBandQuantile) / 2);
  const auto high = quantile(drawn, (1 + kBandQuantile) / 2);
  if (low && high) result.interval95 = Interval{*low, *high};
  return result;
}

std::optional<NoiseBand> noiseBand(std::span<const Block> pairs, std::uint64_t seed) {
  return noiseBand(overhead(pairs, seed));
}

std::optional<NoiseBand> noiseBand(const Overhead& difference) {
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

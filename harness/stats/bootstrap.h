#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace faultline::stats {

/// Below this many blocks a 95 % interval of the median would need values that were not seen: with
/// 5 blocks all lie on one side of the true median with probability 2/32 > 5 %.
inline constexpr std::size_t kMinBlocksForInterval = 6;

struct Interval {
  double low = 0;
  double high = 0;
};

/// 95 % confidence interval of the median by the percentile bootstrap (Efron 1979): the 2.5 % and
/// 97.5 % quantiles of the medians of resamples. Equal seeds give equal intervals. nullopt below
/// kMinBlocksForInterval values or when one is NaN.
std::optional<Interval> medianInterval95(std::span<const double> values, std::uint64_t seed);

}  // namespace faultline::stats

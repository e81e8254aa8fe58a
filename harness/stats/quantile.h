#pragma once

#include <optional>
#include <span>

namespace faultline::stats {

/// Fewer samples than this say nothing about the tail: a p95 of n samples needs a few beyond it.
inline constexpr std::size_t kMinSamplesForP95 = 60;
inline constexpr std::size_t kMinSamplesForP99 = 300;

/// The `fraction` quantile, 0 <= fraction <= 1, with linear interpolation between the closest
/// ranks (Hyndman and Fan 1996, type 7; the default of NumPy and R). nullopt without values or
/// when one of them is NaN.
std::optional<double> quantile(std::span<const double> values, double fraction);

/// quantile(values, 1/2).
std::optional<double> median(std::span<const double> values);

/// A distribution as results print it; what cannot be said from so few samples is absent.
struct Distribution {
  std::size_t n = 0;
  std::optional<double> p50;
  std::optional<double> p95;  ///< from kMinSamplesForP95 on
  std::optional<double> p99;  ///< from kMinSamplesForP99 on
  std::optional<double> max;
};

Distribution describe(std::span<const double> values);

}  // namespace faultline::stats

#include "harness/stats/quantile.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace faultline::stats {

std::optional<double> quantile(std::span<const double> values, double fraction) {
  assert(fraction >= 0 && fraction <= 1);
  if (values.empty()) return std::nullopt;
  if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) {
    return std::nullopt;
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double part = position - static_cast<double>(below);
  // The same value twice may be infinite, and then has no difference.
  if (part == 0 || sorted[below] == sorted[below + 1]) return sorted[below];
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

std::optional<double> median(std::span<const double> values) { return quantile(values, 0.5); }

Distribution describe(std::span<const double> values) {
  Distribution result;
  result.n = values.size();
  result.p50 = median(values);
  result.max = quantile(values, 1);
  if (values.size() >= kMinSamplesForP95) result.p95 = quantile(values, 0.95);
  if (values.size() >= kMinSamplesForP99) result.p99 = quantile(values, 0.99);
  return result;
}

}  // namespace faultline::stats

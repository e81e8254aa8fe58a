#include "harness/stats/drift.h"

#include <algorithm>
#include <cmath>

#include "harness/stats/mann_whitney.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"

namespace faultline::stats {
namespace {

bool usable(std::span<const double> throughputs) {
  return !throughputs.empty() && std::ranges::all_of(throughputs, [](double value) {
    return std::isfinite(value) && value > 0;
  });
}

double spread(std::span<const double> throughputs) {
  const auto [slowest, fastest] = std::ranges::minmax(throughputs);
  return *overheadPercent({.reference = fastest, .measured = slowest});
}

}  // namespace

std::optional<Drift> drift(std::span<const double> before, std::span<const double> after) {
  if (!usable(before) || !usable(after)) return std::nullopt;
  Drift result;
  result.percent = *overheadPercent({.reference = *median(before), .measured = *median(after)});
  if (std::min(before.size(), after.size()) >= kMinValuesToCompare) {
    result.p = mannWhitney(before, after)->p;
  }
  if (std::max(before.size(), after.size()) > 1) {
    result.spreadPercent = std::max(spread(before), spread(after));
  }
  return result;
}

std::optional<double> driftPercent(std::span<const double> throughputs) {
  if (throughputs.size() < kMinValuesForDrift) return std::nullopt;
  const std::size_t third = throughputs.size() / 3;
  const auto before = median(throughputs.first(third));
  const auto after = median(throughputs.last(third));
  if (!before || !after) return std::nullopt;
  return overheadPercent({.reference = *before, .measured = *after});
}

}  // namespace faultline::stats

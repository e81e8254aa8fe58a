#include "harness/stats/next_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace faultline::stats {
namespace {

/// The 99.5 % quantiles of Student's distribution, from 2 degrees of freedom on. The last is taken
/// for all that follow, whose limit is 2.576: the interval is a little wider than it need be.
constexpr std::array kStudent{9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106,
                              3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831,
                              2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750};

}  // namespace

std::optional<Interval> nextValueInterval99(std::span<const double> values) {
  if (values.size() < kMinValuesForNext) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (n - 1));
  const double t = kStudent[std::min(values.size() - kMinValuesForNext, kStudent.size() - 1)];
  const double reach = t * deviation * std::sqrt(1 + 1 / n);
  if (!std::isfinite(reach)) return std::nullopt;
  return Interval{mean - reach, mean + reach};
}

}  // namespace faultline::stats

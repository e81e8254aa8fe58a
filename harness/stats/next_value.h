#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "harness/stats/bootstrap.h"

namespace faultline::stats {

/// Fewer values than this say nothing of how far off the next one may be: the interval of two has
/// 78 times their standard deviation on each side, that of three has 11 times.
inline constexpr std::size_t kMinValuesForNext = 3;

/// Where one more value of the same source lies in 99 of 100 cases, as 1 % is what kSignificance
/// calls chance: the prediction interval of the normal distribution, mean +- t s sqrt(1 + 1 / n), t
/// the 99.5 % quantile of Student's distribution with n - 1 degrees of freedom (Hahn and Meeker,
/// Statistical Intervals, chapter 4). It wants a shape because no test without one can call a
/// single value among fewer than 99 others significant at that level. nullopt below
/// kMinValuesForNext values, or when one of them is not finite.
std::optional<Interval> nextValueInterval99(std::span<const double> values);

}  // namespace faultline::stats

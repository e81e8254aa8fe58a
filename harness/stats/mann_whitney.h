#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace faultline::stats {

/// Values per side below which two results are not compared: with 4 against 4 even a perfect
/// separation has p = 2/70, with 5 against 5 it has 2/252 < kSignificance.
inline constexpr std::size_t kMinValuesToCompare = 5;

/// Below this p two sides differ by more than chance. 1 % and not the usual 5 %, because a
/// comparison has tens of rows: with 5 % each twentieth of equal ones would be called different.
inline constexpr double kSignificance = 0.01;

struct MannWhitney {
  double u = 0;  ///< pairs (one of a, one of b) in which a is greater; ties count half
  double p = 1;  ///< two-sided: how probable so uneven a split is when both come from one source
  bool exact = false;
};

/// The test of Mann and Whitney (1947), two-sided, whether the values of one side tend to be
/// greater than those of the other; it assumes no shape of distribution. Exact, by counting all
/// orders (their recurrence), where no two values are equal and both sides have fewer than 50;
/// otherwise by the normal distribution with the corrections for ties and continuity (Hollander and
/// Wolfe, Nonparametric Statistical Methods, section 4.1). Both choices are those of R's
/// wilcox.test. nullopt when a side is empty or has a NaN.
std::optional<MannWhitney> mannWhitney(std::span<const double> a, std::span<const double> b);

}  // namespace faultline::stats

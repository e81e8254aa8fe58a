#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace faultline::comm {

/// The quickest of several times, in seconds, and whether another one confirms it: what disturbs an
/// exchange makes it longer, so that two that are as good as equal were not disturbed. Pure.
struct Quickest {
  static constexpr double kAsGoodAsEqual = 1.05;

  double first = std::numeric_limits<double>::infinity();
  double second = first;

  void add(double seconds) {
    second = std::min(second, std::max(first, seconds));
    first = std::min(first, seconds);
  }
  bool confirmed() const { return std::isfinite(second) && second <= kAsGoodAsEqual * first; }
};

}  // namespace faultline::comm

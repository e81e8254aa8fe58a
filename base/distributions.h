#pragma once

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace faultline {

/// Exponential with mean 1, by inversion of one uniform number.
inline double exponential(Random& random) { return -std::log1p(-random.unit()); }

/// Normal with mean 0 and deviation 1, of two uniform numbers: Box and Muller 1958.
inline double normal(Random& random) {
  const double radius = std::sqrt(2 * exponential(random));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

}  // namespace faultline

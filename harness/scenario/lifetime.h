#pragma once

#include <string_view>

#include "base/random.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// "exponential", "weibull", "lognormal", "constant": in the order of Lifetime::Kind.
std::string_view name(Lifetime::Kind kind);

/// A lifetime with mean 1 by inversion of one uniform number (lognormal: Box and Muller 1958, two):
/// - exponential: -ln(1-u), with a failure rate that does not depend on age;
/// - weibull: (-ln(1-u))^(1/k) / Gamma(1 + 1/k), shape k: below 1 what has just been repaired fails
///   more often, above 1 it wears out;
/// - lognormal: exp(sigma z - sigma^2/2), z standard normal: most repairs are short, some very
/// long;
/// - constant: 1.
double drawOfMeanOne(const Lifetime& lifetime, Random& random);

/// drawOfMeanOne times the mean over `accelerate`, in whole milliseconds and at least 1 ms: the
/// bench does not look more often. Bounded by a year.
Duration draw(const Lifetime& lifetime, double accelerate, Random& random);

}  // namespace faultline::scenario

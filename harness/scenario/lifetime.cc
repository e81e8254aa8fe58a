#include "harness/scenario/lifetime.h"

#include <algorithm>
#include <cmath>

#include "base/distributions.h"

namespace faultline::scenario {
namespace {

// Far beyond any run, and far from what a Duration cannot hold.
constexpr double kLongestMs = 365.0 * 24 * 3600 * 1000;

}  // namespace

std::string_view name(Lifetime::Kind kind) {
  switch (kind) {
    case Lifetime::Kind::kExponential:
      return "exponential";
    case Lifetime::Kind::kWeibull:
      return "weibull";
    case Lifetime::Kind::kLognormal:
      return "lognormal";
    case Lifetime::Kind::kConstant:
      return "constant";
  }
  return "unknown";
}

double drawOfMeanOne(const Lifetime& lifetime, Random& random) {
  switch (lifetime.kind) {
    case Lifetime::Kind::kExponential:
      return exponential(random);
    case Lifetime::Kind::kWeibull:
      return std::pow(exponential(random), 1 / lifetime.shape) /
             std::tgamma(1 + 1 / lifetime.shape);
    case Lifetime::Kind::kLognormal:
      return std::exp(lifetime.sigma * normal(random) - lifetime.sigma * lifetime.sigma / 2);
    case Lifetime::Kind::kConstant:
      return 1;
  }
  return 1;
}

Duration draw(const Lifetime& lifetime, double accelerate, Random& random) {
  const double ms = toMilliseconds(lifetime.mean) / accelerate * drawOfMeanOne(lifetime, random);
  return std::chrono::milliseconds(std::llround(std::clamp(ms, 1.0, kLongestMs)));
}

}  // namespace faultline::scenario

#include "harness/inference/requests.h"

#include <algorithm>
#include <cmath>

#include "base/distributions.h"

namespace faultline::inference {
namespace {

/// Arrivals, prompts and outputs are drawn from generators of their own.
enum class Draw : std::uint64_t { kArrival = 1, kPrompt, kOutput };

Random generator(std::uint64_t seed, Draw what) {
  return Random(Random::mix(seed + static_cast<std::uint64_t>(what)));
}

}  // namespace

int Lengths::longest() const {
  switch (spread) {
    case Spread::kFixed:
      break;
    case Spread::kUniform:
      return static_cast<int>(std::lround(mean * (1 + cv)));
    case Spread::kLognormal:
      return mean * kLongestInMeans;
  }
  return mean;
}

int Lengths::draw(Random& random) const {
  double length = mean;
  if (spread == Spread::kUniform) length = mean * (1 + cv * (2 * random.unit() - 1));
  if (spread == Spread::kLognormal) {
    // Of a lognormal variable: cv^2 = exp(sigma^2) - 1, mean = exp(mu + sigma^2 / 2).
    const double variance = std::log1p(cv * cv);
    length = mean * std::exp(std::sqrt(variance) * normal(random) - variance / 2);
  }
  return std::clamp(static_cast<int>(std::lround(length)), 1, longest());
}

Arrivals poissonArrivals(double qps, int count, const Lengths& prompt, const Lengths& output,
                         int firstId, std::uint64_t seed) {
  Random arrivals = generator(seed, Draw::kArrival);
  Random prompts = generator(seed, Draw::kPrompt);
  Random outputs = generator(seed, Draw::kOutput);
  Arrivals made{.qps = qps, .requests = {}};
  double when = 0;
  for (int i = 0; i < count; ++i) {
    when += exponential(arrivals) / qps;
    made.requests.push_back({.id = firstId + i,
                             .arrival = when,
                             .prompt = prompt.draw(prompts),
                             .output = output.draw(outputs)});
  }
  return made;
}

}  // namespace faultline::inference

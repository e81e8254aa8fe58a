#include "harness/stats/bootstrap.h"

#include <vector>

#include "base/random.h"
#include "harness/stats/quantile.h"

namespace faultline::stats {
namespace {

/// Enough that the interval's ends move by less than a percent of its width between seeds.
constexpr int kResamples = 4000;
constexpr double kTail = 0.025;

}  // namespace

std::optional<Interval> medianInterval95(std::span<const double> values, std::uint64_t seed) {
  if (values.size() < kMinBlocksForInterval || !median(values)) return std::nullopt;
  Random random(seed);
  std::vector<double> medians;
  std::vector<double> resample(values.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : resample) value = values[random.below(values.size())];
    medians.push_back(*median(resample));
  }
  return Interval{*quantile(medians, kTail), *quantile(medians, 1 - kTail)};
}

}  // namespace faultline::stats

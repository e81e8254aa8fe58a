#include "resilient_ccl/schedule/bound.h"

#include <algorithm>
#include <numeric>

namespace faultline::schedule {

double faultFreeRingTime(int ranks) { return 2.0 * (ranks - 1) / ranks; }

double lowerBound(std::span<const double> bandwidths, PortModel model) {
  const auto p = static_cast<double>(bandwidths.size());
  if (bandwidths.size() < 2) return 0;
  const double slowest = *std::min_element(bandwidths.begin(), bandwidths.end());
  const double total = std::accumulate(bandwidths.begin(), bandwidths.end(), 0.0);
  double bound = std::max(1 / slowest, 2 * (p - 1) / total);
  if (model == PortModel::kOnePort) {
    // Of the one-straggler bounds, that of the slowest is the largest. It holds for r > 1/2 and
    // below that falls behind the first term by itself.
    bound = std::max(bound, 2 * (p - 1) / (p - 2 + 2 * slowest));
  }
  return bound;
}

}  // namespace faultline::schedule

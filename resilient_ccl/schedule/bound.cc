#include "resilient_ccl/schedule/bound.h"

#include <algorithm>
#include <numeric>

namespace faultline::schedule {

double faultFreeRingTime(int ranks) { return 2.0 * (ranks - 1) / ranks; }

double lowerBound(const PortBandwidths& bandwidths, PortModel model) {
  const auto p = static_cast<double>(bandwidths.size());
  if (bandwidths.size() < 2) return 0;
  double bound = 0;
  for (const std::vector<double>* side : {&bandwidths.send, &bandwidths.receive}) {
    const double slowest = *std::min_element(side->begin(), side->end());
    const double total = std::accumulate(side->begin(), side->end(), 0.0);
    bound = std::max({bound, 1 / slowest, 2 * (p - 1) / total});
  }
  if (model == PortModel::kFluid) return bound;
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    // What the straggler sends in x >= 1 occupies its partners for x(1/r - 1) beyond the data, and
    // spares the others x of 2(p-1) transfers. Both ways: (p-1) 2T >= 4(p-1) + sum (1/r - 2) x,
    // where x is best 1 for r <= 1/2, and r T above.
    double work = 4 * (p - 1);
    double ports = 2 * (p - 1);
    for (const double r : {bandwidths.send[rank], bandwidths.receive[rank]}) {
      if (r <= 0.5) {
        work += 1 / r - 2;
      } else {
        ports += 2 * r - 1;
      }
    }
    // A healthy rank says 4(p-1) / (2(p-1) + 2), the fault-free time.
    bound = std::max(bound, work / ports);
  }
  return bound;
}

}  // namespace faultline::schedule

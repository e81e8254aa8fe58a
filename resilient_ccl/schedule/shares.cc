#include "resilient_ccl/schedule/shares.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace faultline::schedule {
Shares::Shares(const std::vector<std::int64_t>& weights) : prefix_{0} {
  for (const std::int64_t weight : weights) {
    assert(weight >= 0);
    prefix_.push_back(prefix_.back() + weight);
  }
  assert(0 < total() && total() <= kMaxTotal);
}

Piece Shares::piece(Piece whole, int index) const {
  // Splitting the product keeps count * prefix from overflowing for huge buffers.
  const std::int64_t quotient = whole.count / total();
  const std::int64_t rest = whole.count % total();
  const auto boundary = [&](std::int64_t prefix) {
    return quotient * prefix + (2 * rest * prefix + total()) / (2 * total());
  };
  const std::int64_t begin = boundary(prefix_[slot(index)]);
  return {whole.offset + begin, boundary(prefix_[slot(index) + 1]) - begin};
}

std::int64_t bandwidthSteps(double bandwidth) {
  return std::max<std::int64_t>(1, std::llround(bandwidth * static_cast<double>(kBandwidthSteps)));
}

Shares ownerShares(int ranks, const PortBandwidths& bandwidths, PortModel model) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(ranks), kBandwidthSteps);
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    steps[rank] = bandwidthSteps(bandwidths.slower(rank));
  }
  const auto [slowest, fastest] = std::minmax_element(steps.begin(), steps.end());
  const std::int64_t sum = std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
  const std::int64_t transfers = 2 * (static_cast<std::int64_t>(ranks) - 1);
  // Two ranks exchange S each way however they share, and a lone one owns everything.
  if (ranks <= 2 || *slowest == *fastest) return Shares(std::vector<std::int64_t>(steps.size(), 1));
  std::vector<std::int64_t> weights;
  for (const std::int64_t step : steps) {
    if (model == PortModel::kOnePort) {
      weights.push_back(std::max<std::int64_t>(0, 2 * step - *fastest));
    } else if (sum >= transfers * *slowest) {
      weights.push_back(step - *slowest);  // T = 1/slowest
    } else {
      weights.push_back(transfers * step - sum);  // T = 2(p-1)/sum, which is more
    }
  }
  const std::int64_t divisor =
      std::accumulate(weights.begin(), weights.end(), std::int64_t{0}, std::gcd<long, long>);
  const std::int64_t total = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  // Above a thousand ranks the last bits of the weights have to go.
  const std::int64_t coarser = divisor * (total / divisor / Shares::kMaxTotal + 1);
  for (std::int64_t& weight : weights) weight /= coarser;
  return Shares(weights);
}

}  // namespace faultline::schedule

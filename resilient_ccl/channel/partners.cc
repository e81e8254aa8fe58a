#include "resilient_ccl/channel/partners.h"

#include <algorithm>

namespace faultline::channel {

std::vector<std::vector<int>> partnersByNumber(int rails) {
  std::vector<std::vector<int>> partners(rails);
  for (int rail = 0; rail < rails; ++rail) {
    for (int step = 1; step < rails; ++step) partners[rail].push_back((rail + step) % rails);
  }
  return partners;
}

std::vector<std::vector<int>> partnersByDistance(const std::vector<std::vector<int>>& distance) {
  std::vector<std::vector<int>> partners = partnersByNumber(static_cast<int>(distance.size()));
  for (std::size_t rail = 0; rail < distance.size(); ++rail) {
    std::ranges::stable_sort(partners[rail], {}, [&](int other) { return distance[rail][other]; });
  }
  return partners;
}

}  // namespace faultline::channel

#pragma once

#include <vector>

namespace faultline::channel {

/// For each of `rails` rails all others, from the next one on: the order in which they take over
/// when nothing is known about where the NICs sit.
std::vector<std::vector<int>> partnersByNumber(int rails);

/// For each rail all others, nearest first; those at the same distance as partnersByNumber has
/// them. `distance[a][b]` is that from NIC a to NIC b in any unit, smaller is nearer.
std::vector<std::vector<int>> partnersByDistance(const std::vector<std::vector<int>>& distance);

}  // namespace faultline::channel

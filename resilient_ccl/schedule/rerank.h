#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// Which rails every rank still has: bit i of an entry = rail i. Rail i of one rank reaches only
/// rail i of another, so that two ranks talk over the rails that both have.
struct LiveRails {
  int rails = 1;  ///< per healthy rank, 1..64
  std::vector<std::uint64_t> live;

  int ranks() const { return static_cast<int>(live.size()); }
  /// What is left of a rank's port, and of the link between two, as fractions of a healthy port.
  double port(int rank) const;
  double link(int a, int b) const;
  /// Of all links, from a to b at a * ranks + b.
  std::vector<double> links() const;
};

/// An order of the ranks in which neighbours, the last and the first included, have as many rails
/// in common as can be arranged: ranks that lost different rails are kept apart by ranks that have
/// both (bridges). Begins with rank 0; keeps the ranks in their order where nothing is gained.
///
/// The worst link decides over a ring. For each possible number of common rails, from the largest
/// down, a cycle is looked for greedily (the neighbour with the fewest choices first), from every
/// rank. Greedy, so that it may miss a cycle that exists, but never returns an order with a worse
/// link than the one given. O(p^3) per number of rails.
std::vector<int> rerank(const LiveRails& rails);

/// The slowest link between neighbours of a ring in this order.
double worstLink(const LiveRails& rails, const std::vector<int>& order);

/// The same schedule with rank order[i] in the place of rank i. `order` holds every rank once. For
/// AllReduce: the blocks and roots of other collectives belong to ranks and would move along.
std::unique_ptr<Schedule> reordered(std::unique_ptr<Schedule> schedule, std::vector<int> order);

}  // namespace faultline::schedule

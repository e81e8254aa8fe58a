#pragma once

#include <memory>
#include <vector>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// Broadcast from `order[0]`, or Reduce to it, along a chain of all ranks, pipelined in `segments`
/// segments: every rank sends the data once and receives it once, except for the ends. One lane; a
/// receive is granted one segment ahead. `order` holds every rank once (asserted, as are elements
/// >= 0 and segments >= 1).
std::unique_ptr<Schedule> chainBroadcast(std::vector<int> order, std::int64_t elements,
                                         int segments);
std::unique_ptr<Schedule> chainReduce(std::vector<int> order, std::int64_t elements, int segments);

/// `root`, then the others by falling bandwidth (by rank where equal, counted from the root): the
/// last one of a broadcast does not send, the last one of a reduction does not receive, so that a
/// loss in that direction costs nothing. `bandwidths` of that direction; empty: in order of rank.
std::vector<int> chainOrder(int ranks, int root, const std::vector<double>& bandwidths);

}  // namespace faultline::schedule

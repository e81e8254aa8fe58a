#pragma once

#include <memory>
#include <vector>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// AllGather for ranks that send slowly: what a rank has no time to send to everybody it sends
/// once, to a rank with time to spare, which passes it on. All ports send for (p-1)/sum b, the
/// lower bound, or the slowest just its own block, 1/(p b); plus the way through a relay,
/// 1/segments. `send`: bandwidths in that direction; empty: all healthy.
///
/// Two lanes: owners to all and to relays; relays to all. ranks >= 1, elements >= 0, segments >= 1
/// (asserted; `makeSchedule` checks user input).
std::unique_ptr<Schedule> relayAllGather(int ranks, std::int64_t elements, int segments,
                                         const std::vector<double>& send);

/// ReduceScatter for ranks that receive slowly, the same backwards: a relay adds up what others
/// have for a slow rank and sends it the sum. Contributions are added in a fixed order, each block
/// by its rank and its relays.
std::unique_ptr<Schedule> relayReduceScatter(int ranks, std::int64_t elements, int segments,
                                             const std::vector<double>& receive);

}  // namespace faultline::schedule

#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// Ring AllReduce: every rank sends 2(p-1)/p of the buffer to its right neighbour and receives as
/// much from its left one. The buffer is split into `lanes` parts and each lane is a ring of its
/// own over its part (`RingLane`), so that lanes overlap each other's latency. The order of
/// summation is fixed: all ranks hold bit-identical results. Each operation is computed in O(1).
/// With one rank, no elements, or an empty part, a lane has no operations.
///
/// ranks >= 1, elements >= 0, lanes >= 1 (asserted; `makeSchedule` checks user input).
std::unique_ptr<Schedule> ringAllReduce(int ranks, std::int64_t elements, int lanes);

}  // namespace faultline::schedule

#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// One half of the ring AllReduce: rank i ends with the sum of block i, or starts with block i.
/// Each rank sends and receives (p-1)/p of the data. Every block is split into `lanes` parts, one
/// for each lane. ranks >= 1, elements >= 0, lanes >= 1 (asserted; `makeSchedule` checks user
/// input).
std::unique_ptr<Schedule> ringReduceScatter(int ranks, std::int64_t elements, int lanes);
std::unique_ptr<Schedule> ringAllGather(int ranks, std::int64_t elements, int lanes);

}  // namespace faultline::schedule

#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// AllReduce for small messages: binomial tree to rank 0 and back, at most 2 log2 p messages deep
/// (a ring: 2(p-1)). Rank r receives from r + 2^i for every 2^i below its lowest set bit (below p
/// for rank 0), adds in ascending order, and sends to r without that bit. Any number of ranks;
/// results are bit-identical.
///
/// One lane per segment, each for its part of the buffer: the sums of one travel while another is
/// added. Inner ranks move log2(p) S per direction, so this is not for large buffers. ranks >= 1,
/// elements >= 0, segments >= 1 (asserted; `makeSchedule` checks user input).
std::unique_ptr<Schedule> treeAllReduce(int ranks, std::int64_t elements, int segments);

}  // namespace faultline::schedule

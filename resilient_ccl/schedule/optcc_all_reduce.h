#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"
#include "resilient_ccl/schedule/shares.h"

namespace faultline::schedule {

/// AllReduce at the lower bound for any number of slow ranks: the cyclic-shift schedule D of OptCC
/// (arXiv 2606.01680; docs/schedules.md). Rank i owns the share w_i of every segment: all others
/// send it their contributions to its shard, it adds them up and sends all of them the result.
///
/// For segment after segment c = 0..segments and macro step t = 1..p-1 rank i sends to rank
/// j = (i+t) mod p its contribution to j's shard of segment c and its own finished shard of segment
/// c-1; it receives the same from rank (i-t) mod p. A macro step is a permutation: nobody is sent
/// to by two. An owner adds the contributions in the order of the macro steps (`Op::after`),
/// whatever the order in which they arrive: results are bit-identical. Elements are overwritten
/// only after their owner has got this rank's contribution: in place is safe.
///
/// Lane 0 holds the contributions, lane 1 the results. Of each kind `window` receives are granted
/// at a time, in the order of the macro steps; 0 stands for 3(p-1), three from every peer, which
/// keeps all ports busy (docs/schedules.md). Contributions are at most three segments ahead of the
/// results, so that at most 3 S/segments of them can wait for their turn in memory.
///
/// Each operation is computed in O(1); shares of no weight make operations of no elements. ranks >=
/// 1, elements >= 0, segments >= 1, window >= 0, one share per rank (asserted; `makeSchedule`
/// checks user input). Fewer segments are made where a shard would have less than one element.
std::unique_ptr<Schedule> optccAllReduce(int ranks, std::int64_t elements, int segments, int window,
                                         Shares shares);

}  // namespace faultline::schedule

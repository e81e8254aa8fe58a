#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// The neighbour-only variant of `optccAllReduce` for one slow rank (schedule R2 of
/// docs/schedules.md): the n = p-1 other ranks form a ring, into which the straggler is spliced at
/// another link in every macro step. For a network that carries ring traffic well and all-to-all
/// traffic badly.
///
/// The buffer has K = segments * n chunks. With e = x mod (n-1), everything else mod n, chunk x
/// goes from the straggler to position x in macro step x; it is reduced along n-1 links, e+x+2+h ->
/// e+x+3+h in step x+2+h, and finished at position e+x+1; is spread along n-1 links from there in
/// the steps x+n+1+h; and goes from position x-1 to the straggler in step x+2n. So every link but
/// the gap carries one hop of each kind in a macro step.
///
/// Lane 0 has the straggler's contributions and the reduction, lane 1 the rest. The order of
/// summation is fixed. Operations are computed in O(1). ranks >= 3, 0 <= straggler < ranks,
/// elements
/// >= 0, segments >= 1 (asserted; `makeSchedule` checks user input and makes a ring of fewer
/// ranks).
std::unique_ptr<Schedule> optccRing(int ranks, std::int64_t elements, int segments, int straggler);

}  // namespace faultline::schedule

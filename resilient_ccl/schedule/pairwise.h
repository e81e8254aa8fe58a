#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// AllToAll in p-1 macro steps: in step t rank i sends block i+t of its input to rank i+t and
/// receives into block i-t of its output from rank i-t (mod p); its own block is copied. The data
/// is rounded up to p equal blocks. `window` receives are granted at a time, in that order; 0 =
/// all. One lane.
std::unique_ptr<Schedule> pairwiseAllToAll(int ranks, std::int64_t elements, int window);

/// Every rank sends its input to the next rank and receives its output from the one before, in
/// `segments` messages of which `window` are granted at a time (0 = all). A lone rank copies.
std::unique_ptr<Schedule> ringSendRecv(int ranks, std::int64_t elements, int segments, int window);

}  // namespace faultline::schedule

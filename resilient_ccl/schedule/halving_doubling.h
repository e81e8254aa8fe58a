#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// AllReduce by recursive halving and doubling (Thakur, Rabenseifner, Gropp 2005): with p = 2^k
/// ranks 2k messages deep, as a tree, and with the volume of a ring, 2(p-1)/p. In step s = 1..k
/// ranks that differ in bit k-s exchange halves of what they still share and add; the same way
/// backwards they exchange results. Every element is finished by one rank: results are
/// bit-identical.
///
/// Other numbers of ranks: of the first 2(p - 2^k) ranks every second one hands its data to the one
/// before it and gets the result in the end, two more messages of the whole buffer.
///
/// One lane per segment, each for its part of the buffer. ranks >= 1, elements >= 0, segments >= 1
/// (asserted; `makeSchedule` checks user input).
std::unique_ptr<Schedule> halvingDoublingAllReduce(int ranks, std::int64_t elements, int segments);

}  // namespace faultline::schedule

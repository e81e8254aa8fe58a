#pragma once

#include "resilient_ccl/schedule/event_order.h"
#include "resilient_ccl/schedule/intervals.h"
#include "resilient_ccl/schedule/proof_work.h"

namespace faultline::schedule {

/// Finds pairs of operations of one rank that touch the same elements, at least one of them
/// writing, without anything that makes the one end before the other begins: for example a send
/// that does not wait for the reduction of its data. `order` must hold all events of the table.
///
/// Time is O(ranks x events); lanes that share no elements are looked at apart. A ring of 64 ranks
/// takes milliseconds, one of 512 some seconds. Besides, pairs are looked at one by one: operations
/// that all write the same elements take the square of their number. Ends when the work is over, or
/// a table of it does not fit, or there are enough problems.
void findRaces(const OpTable& table, const Intervals& intervals, const EventOrder& order,
               ProofWork& work, Problems& problems);

}  // namespace faultline::schedule

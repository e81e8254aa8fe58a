#pragma once

#include <memory>

#include "base/status.h"
#include "resilient_ccl/schedule/msccl/algo.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule::msccl {

/// The algorithm as a schedule for `dataElements` elements per rank, chunks as equal as possible
/// (an AllToAll rounds up to equal ones). It still has to be verified: nothing here says that the
/// algorithm is right.
///
/// With orders in the steps a channel is a lane, and the schedule is the one that was exported.
/// Otherwise each channel has a lane for every receiver, with operations in an order in which MSCCL
/// could finish them, so that lanes add no order between thread blocks but among those that
/// receive. What waits is what MSCCL orders and what, inside a thread block, touches the same
/// chunks; a message itself does not wait, for MSCCL receives ahead into a queue. `rrs` leaves its
/// sum in the source, where MSCCL leaves it nowhere.
///
/// kInvalidArgument when messages do not match, two thread blocks of a rank share a connection, the
/// steps wait for each other in a circle, or orders contradict the order of steps.
Result<std::unique_ptr<Schedule>> importSchedule(const Algo& algo, std::int64_t dataElements);

}  // namespace faultline::schedule::msccl

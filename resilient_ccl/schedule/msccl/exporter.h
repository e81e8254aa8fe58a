#pragma once

#include "base/status.h"
#include "resilient_ccl/schedule/msccl/algo.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule::msccl {

/// The schedule as an MSCCL algorithm. A lane becomes a channel (of more lanes than there are
/// channels several, which share no connection), a lane's messages with one peer in one direction a
/// thread block. The chunk is the largest unit that all pieces are made of.
///
/// A lane *issues* in order, which MSCCL has not: a step waits for all that the operations before
/// it in its lane wait for. The grants of receives become waits like all others.
///
/// kInvalidArgument for a wrong schedule, kUnsupported for one that does not fit, with the limit
/// and what to change: pieces without a useful common unit, too many chunks, channels, thread
/// blocks or steps, a message of more than kMaxCount chunks, or a collective that MSCCL does not
/// have. What is returned has been read back, its XML by the parser (xml.h), and verified.
Result<Algo> exportSchedule(const Schedule& schedule);

}  // namespace faultline::schedule::msccl

#pragma once

#include <vector>

#include "base/status.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::comm {

/// For each operation of each lane of a rank: whether it is a reduction that brings the last
/// contribution, so that its piece holds those of all ranks afterwards (where a schedule has
/// several such places for one element, each of them). Plays the whole schedule, of all ranks: for
/// schedules that are executed, not for those of a thousand ranks. The schedule must be a correct
/// one; kInvalidArgument when it visibly is not, kUnsupported when it is too large.
Result<std::vector<std::vector<bool>>> findCompletions(const schedule::Schedule& schedule,
                                                       int rank);

}  // namespace faultline::comm

#pragma once

#include <optional>

#include "base/clock.h"
#include "harness/control/fault_control.h"
#include "harness/control/sampler.h"
#include "harness/record/observed.h"

namespace faultline::run {

/// Of a run that is over, whatever its workload; `faults`: nothing when it had none. `start`: of
/// the run's clock.
Observed observedBy(const Sampler& sampler, const std::optional<FaultControl>& faults,
                    TimePoint start);

}  // namespace faultline::run

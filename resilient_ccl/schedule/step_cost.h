#pragma once

#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/step_view.h"

namespace faultline::schedule {

/// What a schedule of cyclic shifts costs, from its steps: time O(messages), memory O(ranks).
///
/// kOnePort: ports serve messages in the order of the macro steps, contributions before results, at
/// the rate of the slower end; a result waits for the contributions to it, nothing else waits.
/// kFluid: one cycle after the other, each as long as its busiest port: what a cycle can be done in
/// when ports are shared freely, without the overlap of cycles that `costOf` sees in operations.
///
/// Fills what depends on the schedule: `time`, `messagesPerRankMax` and `depth`.
Cost costOfSteps(const StepView& steps, std::int64_t elements, const PortBandwidths& bandwidths,
                 const CostOptions& options);

}  // namespace faultline::schedule

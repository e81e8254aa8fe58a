#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/control/struck_fault.h"
#include "harness/record/damage.h"
#include "harness/site/cluster.h"
#include "reports/result.h"

/// What the faults of a run did, for its result. Pure: nothing is asked of the network.
namespace faultline::run {

/// What they have changed so far; `network`: of the nodes, in their order.
FaultChanges changesOf(std::span<const StruckFault> faults,
                       std::span<const site::NodeNetwork> network);
/// The moments at which they broke something, ascending.
std::vector<TimePoint> damagesOf(std::span<const StruckFault> faults);

/// An entry for every time a fault struck; `t0` is the run's time zero.
std::vector<reports::AppliedFault> appliedOf(std::span<const StruckFault> faults, TimePoint t0);
/// Likewise.
std::vector<reports::Evidence> evidenceOf(std::span<const StruckFault> faults);

/// Why the run proves nothing, or empty: a fault that struck too seldom, missed, or left no
/// evidence once. `ranks`: how many tell of their iterations; `foreign`: they are programs that are
/// not ours.
std::string whyInvalid(std::span<const StruckFault> faults, int ranks, bool foreign);

}  // namespace faultline::run

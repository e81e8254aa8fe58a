#pragma once

#include "base/units.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {

/// What a gradient cannot be although each of its values is fine.
void checkTraining(const WorkloadChecking& checking);

/// What a rank has of the gradient.
Bytes trainingData(const Scenario& scenario);

}  // namespace faultline::scenario

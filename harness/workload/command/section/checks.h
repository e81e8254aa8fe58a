#pragma once

#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {

/// What a scenario of kind command asks for and cannot have.
void checkCommand(const WorkloadChecking& checking);

}  // namespace faultline::scenario

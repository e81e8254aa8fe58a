#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Faults of queue pairs where no process of the job can have the verbs shim that brings them.
void checkVerbs(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

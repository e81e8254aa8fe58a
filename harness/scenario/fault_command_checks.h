#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Faults that are commands of the user's: each program must be on this machine, in PATH.
void checkFaultCommands(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

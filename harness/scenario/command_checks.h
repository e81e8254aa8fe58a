#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What a scenario of kind command asks for and cannot have, and what only such a one can.
void checkCommand(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Strategies that cannot be had with this workload or with these faults, and what a list of them
/// must have.
void checkStrategies(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

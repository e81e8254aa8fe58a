#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Reports what is impossible although each value by itself is fine: rail 5 of 2, a watchdog longer
/// than the fault. Only what can be known without running. `root` tells where values stand.
void checkScenario(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What the workload allows of strategies and of their options: ranks of ours and programs that are
/// not have different ones.
void checkRowOptions(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

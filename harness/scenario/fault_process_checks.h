#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What is wrong with `fault_processes` beyond one key: elements that are not there, times that do
/// not fit into each other, and a seed that draws no fault.
void checkProcesses(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

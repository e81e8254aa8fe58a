#pragma once

#include "base/parameter.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// The part `inference` of a workload whose `model` has been read, with the file that it names. If
/// it cannot be, says why, and the workload has none. `values` are those of the whole scenario.
void readServing(const Node& root, const Parameters& values, int ranks, Workload& workload,
                 Findings& findings);

}  // namespace faultline::scenario

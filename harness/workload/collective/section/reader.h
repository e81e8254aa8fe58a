#pragma once

#include "base/parameter.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/sweep.h"

namespace faultline::scenario {

/// Reads `workload.collective`. `values` are the scalars of the whole scenario by their paths
/// (RecordReader::read).
Sweep readSweep(const Node& root, const Parameters& values, Findings& findings);

}  // namespace faultline::scenario

#pragma once

#include "harness/command/command.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Reads `workload.command`. `values` are the scalars of the whole scenario by their paths
/// (RecordReader::read).
command::Command readCommand(const Node& root, const Parameters& values, const Cluster& cluster,
                             Findings& findings);

}  // namespace faultline::scenario

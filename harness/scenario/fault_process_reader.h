#pragma once

#include <string>

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// One element of `fault_processes`, which stands at `path`.
FaultProcess readProcess(const Node& node, const std::string& path, Findings& findings);

}  // namespace faultline::scenario

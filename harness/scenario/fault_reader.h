#pragma once

#include <string>

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// One element of `faults`, which stands at `path`.
Fault readFault(const Node& node, const std::string& path, Findings& findings);

/// One element of `sequences`.
Sequence readSequence(const Node& node, const std::string& path, Findings& findings);

}  // namespace faultline::scenario

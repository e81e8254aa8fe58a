#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What a cluster of the scenario's kind cannot be, or cannot do (site/kind.h).
void checkSite(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario

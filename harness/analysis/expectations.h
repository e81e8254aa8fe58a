#pragma once

#include <vector>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The scenario's `expect`, judged line by line. A line that speaks of what a fault did, in runs
/// where nobody saw it happen, or of a speed that is mis-measured or drowns in noise, is void: it
/// neither holds nor fails. Pure.
std::vector<reports::Expectation> evaluateExpectations(const scenario::Scenario& scenario,
                                                       const reports::ScenarioResult& result);

}  // namespace faultline::run

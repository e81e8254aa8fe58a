#pragma once

#include <vector>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// Looks up every metric of scenario/metric_table.h in a result, whose `summary` is filled in. For
/// strategies that had faulted runs, of those; of the whole result, of all runs. The result must
/// outlive the lookup. Pure.
scenario::MetricLookup metricsOf(const reports::ScenarioResult& result);

/// The scenario's `expect`, judged line by line. A line that speaks of what a fault did, in runs
/// where nobody saw it happen, or of a speed that is mis-measured or drowns in noise, is void: it
/// neither holds nor fails. Pure.
std::vector<reports::Expectation> evaluateExpectations(const scenario::Scenario& scenario,
                                                       const reports::ScenarioResult& result);

/// Every fault that was due in the run has happened, hit what it was meant for, and was seen to
/// happen by somebody else. True for runs in which no fault was due.
bool evidenceIsComplete(const reports::Run& run);

}  // namespace faultline::run

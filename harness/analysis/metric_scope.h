#pragma once

#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::run {

/// What a metric is computed from.
struct MetricScope {
  const reports::ScenarioResult& result;
  const reports::Summary* row;            ///< null for the whole result, or without one
  std::vector<const reports::Run*> runs;  ///< the runs that count
  bool whole = false;                     ///< of the result, not of a strategy
};

/// Of a strategy that had faulted runs, those; of the whole result (no strategy), all runs.
MetricScope scopeOf(const reports::ScenarioResult& result, const std::string& strategy);

/// Whether the run ended before it had done its work: it failed, or hung and did not go on.
bool cutShort(const reports::Run& run);
/// The first of the scope's runs of which that is so; nullptr: of none.
const reports::Run* firstCutShort(const MetricScope& scope);

/// Every fault that was due in the run has happened, hit what it was meant for, and was seen to
/// happen by somebody else. True for runs in which no fault was due.
bool evidenceIsComplete(const reports::Run& run);

}  // namespace faultline::run

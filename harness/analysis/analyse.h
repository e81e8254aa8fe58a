#pragma once

#include <vector>

#include "harness/record/experiment_facts.h"
#include "harness/record/recorded_run.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// Everything that a result says, from what was observed: rows of each run, comparisons of blocks,
/// noise, summary, expectations, verdict. Pure: no clock, no machine, no files, so that the same
/// runs always give the same result. `runs` are in the order in which they were made.
reports::ScenarioResult analyse(const scenario::Scenario& scenario, std::vector<RecordedRun> runs,
                                ExperimentFacts facts);

}  // namespace faultline::run

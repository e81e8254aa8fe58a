#pragma once

#include <vector>

#include "reports/result.h"

namespace faultline::run {

/// Results of one scenario as one result: a scenario that was run in pieces, which differ in how
/// often they repeat it and in their seed, and not in the machine and the program. Runs and pauses
/// are those of all pieces; an expectation holds that holds in each, and the verdict is the worst.
/// Everything else of the summary is that of the first piece. In the order of the first pieces.
std::vector<reports::ScenarioResult> joined(std::vector<reports::ScenarioResult> results);

}  // namespace faultline::run

#pragma once

#include "reports/result.h"

namespace faultline::history {

/// What equal runs of a result differed by, in percent: their median where fault_free has a second
/// row (`noise`), otherwise what the drift check saw, the more of its spread on a side and of its
/// drift from one side to the other. With one run on each side that is the drift alone. 0: nobody
/// looked. Pure.
double equalRunsPercent(const reports::ScenarioResult& result);

}  // namespace faultline::history

#pragma once

#include <string>

#include "reports/result.h"

namespace faultline::reports {

/// What a sweep came to: a line per call (operation, size, type, place) and a column per strategy,
/// with the median bus bandwidth in GB/s and the share of fault_free's. At most 100 columns wide:
/// of many strategies several tables. Empty without collective calls. Pure.
std::string bandwidthTable(const ScenarioResult& result);

}  // namespace faultline::reports

#pragma once

#include <string>

#include "reports/result.h"

namespace faultline::reports {

/// A table for every run that has collective calls, in the columns of nccl-tests, so that what
/// reads those reads these; other lines begin with '#'. Times are medians over the calls of a row
/// (of the slowest rank), where nccl-tests has means; small bandwidths have more digits. Where a
/// place was not measured, its columns are N/A. Empty without such runs.
std::string collectivesText(const ScenarioResult& result);

}  // namespace faultline::reports

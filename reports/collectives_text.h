#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reports/result.h"

namespace faultline::reports {

/// A table for every run that has collective calls, in the columns of nccl-tests, so that what
/// reads those reads these; other lines begin with '#'. Times are medians over the calls of a row
/// (of the slowest rank), where nccl-tests has means; small bandwidths have more digits. Where a
/// place was not measured, its columns are N/A. Empty without such runs.
std::string collectivesText(const ScenarioResult& result);

/// The lines above the rows of one operation.
std::string collectivesHead(std::string_view operation);
/// The line of a call out of place and of the same one in place; null: not measured. Not both null.
std::string collectivesLine(const CollectiveRow* outOfPlace, const CollectiveRow* inPlace);
/// The lines below all rows: elements that were wrong, mean of the bus bandwidths in GB/s.
std::string collectivesFoot(std::int64_t wrong, double meanBusBandwidth);

}  // namespace faultline::reports

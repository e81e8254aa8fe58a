#pragma once

#include <vector>

#include "harness/analysis/settled_calls.h"
#include "harness/record/call_table.h"
#include "reports/result.h"

namespace faultline::run {

/// A row for each cell of which some call has ended on all ranks, in the order of the sweep. Its
/// times are those of the calls that count (countedOf).
std::vector<reports::CollectiveRow> rowsOf(const CallTable& table, const CallFates& fates = {});

}  // namespace faultline::run

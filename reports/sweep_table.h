#pragma once

#include <span>
#include <string>

#include "reports/result.h"

namespace faultline::reports {

/// One Markdown table over the collective calls of many results: a row for each operation, size,
/// type, operator and place of each strategy of each result, with medians over the runs. Columns
/// that compare are empty where there is nothing to compare with; cells of few bytes say "latency"
/// in the place of their ratio to the bound, those better than possible "mis-measured", those in
/// which no plan ever fitted the ports "unsettled".
std::string sweepTable(std::span<const ScenarioResult> results);

}  // namespace faultline::reports

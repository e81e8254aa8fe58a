#pragma once

#include <cstddef>

#include "reports/result.h"

namespace faultline::reports {

/// How much of a result goes into the page.
struct ViewLimits {
  int points = 600;    ///< per run and curve; longer ones are merged into fewer, wider points
  int blocks = 1000;   ///< blocks whose curves are shown
  int events = 400;    ///< failovers and failbacks, and strikes of faults, per run
  int runs = 100'000;  ///< runs in the table of runs
};

/// What report.js reads: the result with its curves as columns and thinned to the limits, plus
/// the verdict in words, the tallies and the distributions. `notes` says what was thinned.
Json reportView(const ScenarioResult& result, const ViewLimits& limits);

/// The view's text with the mildest limits that keep it below `budget` bytes. Safe inside a script
/// element: no '<', '>' or '&' in it.
std::string reportViewText(const ScenarioResult& result, std::size_t budget);

}  // namespace faultline::reports

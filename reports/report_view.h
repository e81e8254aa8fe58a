#pragma once

#include <cstddef>

#include "reports/result.h"

namespace faultline::reports {

/// How much of a result goes into the page.
struct ViewLimits {
  int points = 600;    ///< per run and curve; longer ones are merged into fewer, wider points
  int blocks = 1000;   ///< blocks whose curves are shown
  int events = 400;    ///< failovers, strikes of faults, plans, ends of processes, ..., per run
  int calls = 2500;    ///< lines in the table of calls: one per call and strategy, calls as a whole
  int metrics = 64;    ///< columns of what programs told, in the table of runs
  int runs = 100'000;  ///< runs in the table of runs
};

/// What report.js reads: the result with its curves as columns and thinned to the limits, and the
/// rows of collective calls as their medians (swept_calls.h), plus the verdict in words, the
/// tallies and the distributions. What the page does not draw is not in it. `notes` says what was
/// thinned.
Json reportView(const ScenarioResult& result, const ViewLimits& limits);

/// The view's text with the mildest limits that keep it below `budget` bytes. Safe inside a script
/// element: no '<', '>' or '&' in it.
std::string reportViewText(const ScenarioResult& result, std::size_t budget);

}  // namespace faultline::reports

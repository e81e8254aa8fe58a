#pragma once

#include <vector>

#include "reports/run_result.h"

namespace faultline::reports {

/// A time in which a run did so many iterations, evenly.
struct Pace {
  int index = 0;  ///< of the iteration
  double start_ms = 0;
  double ms = 0;
  double count = 0;  ///< of iterations; of one that a fault struck, a part of it
};

/// How fast a run went, as a chart shows it: pieces in the order of time that do not overlap.
///
/// How far an iteration was when a fault struck it is not in the result. It is drawn in two pieces:
/// until the fault at the pace of the last iteration that no fault struck, and from then on what
/// was left of it. An iteration that was interrupted ran until the fault, then not at all, and from
/// the last time that it was begun until its end. One that never ended is drawn as no work. Pure.
std::vector<Pace> paceOf(const Run& run);

}  // namespace faultline::reports

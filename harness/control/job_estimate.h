#pragma once

#include <string>
#include <vector>

#include "harness/control/capacity.h"
#include "harness/scenario/scenario.h"
#include "harness/site/footprint.h"

namespace faultline::run {

/// What a scenario takes of a machine while one of its runs is under way: runs come one after the
/// other, and each has a cluster of its own. docs/command.md says how the numbers were measured.
struct JobEstimate : site::Footprint {
  /// The programs of a `command` are not ours: what they take besides is not known.
  bool foreign = false;
};

/// Pure.
JobEstimate estimateJob(const scenario::Scenario& scenario);

/// "needs about 8 processes, 32 threads, ...".
std::string inWords(const JobEstimate& estimate);

/// What of it the machine cannot hold, one sentence each with the limit and both numbers; empty: it
/// fits. Pure.
std::vector<std::string> shortages(const JobEstimate& estimate, const Capacity& capacity);

/// What the machine cannot do as fast as the scenario says: a warning, as a run is still right.
/// Pure.
std::vector<std::string> tooFast(const scenario::Scenario& scenario, const Capacity& capacity);

}  // namespace faultline::run

#pragma once

#include "base/clock.h"
#include "base/units.h"
#include "harness/scenario/scenario.h"
#include "resilient_ccl/schedule/collective.h"

/// How long communication takes at the rates of the rails, by the scenario alone. Pure.
namespace faultline::scenario {

/// Never more than 30 years: beyond them nobody reads the number.
Duration durationOfSeconds(double seconds);

/// One call of all ranks with `size` bytes.
double secondsOfCall(const Cluster& cluster, schedule::Collective operation, Bytes size);

/// One iteration of `compute` and `gradient`: communication of a bucket goes on while the next is
/// computed.
double secondsOfIteration(const Scenario& scenario);

}  // namespace faultline::scenario

#pragma once

#include <string>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Why no run of the scenario can give this metric a value, in words; empty: one can. A number that
/// counts something has one always: 0. Pure.
std::string whyNeverAValue(const MetricName& name, const Scenario& scenario);

}  // namespace faultline::scenario

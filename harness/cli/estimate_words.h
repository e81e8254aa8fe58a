#pragma once

#include <string>
#include <vector>

#include "harness/cli/output.h"
#include "harness/control/capacity.h"
#include "harness/control/job_estimate.h"
#include "harness/scenario/scenario.h"

namespace faultline::cli {

/// What this machine cannot hold of the scenario, or not do as fast as it says; one line each.
std::vector<std::string> warningsOf(const scenario::Scenario& scenario,
                                    const run::Capacity& capacity);

/// kUnavailable when the machine cannot hold one of them, with all that is missing and the cure.
Status fits(const std::vector<scenario::Scenario>& scenarios, const run::Capacity& capacity);

/// The estimate as data.
Json estimateJson(const scenario::Scenario& scenario);

}  // namespace faultline::cli

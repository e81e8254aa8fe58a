#pragma once

#include <string>

#include "harness/cli/output.h"
#include "harness/scenario/scenario.h"

/// What `faultline run --dry-run` says. Pure.
namespace faultline::cli {

/// The cluster, the faults, the runs in their order, and how long they take.
std::string planText(const scenario::Scenario& scenario);

/// The same for programs; `estimate` has seconds, the likely ones null where nobody knows.
Json planJson(const scenario::Scenario& scenario);

}  // namespace faultline::cli

#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// From tree to struct, guided by the tables. Each value is checked by itself; what values mean
/// together is for checks.h. Parts with mistakes hold stand-ins and are named in `findings`.
/// Files that it names are relative to `folder`; empty: to the current one.
Scenario interpret(const Node& root, const std::string& folder, Findings& findings);

}  // namespace faultline::scenario

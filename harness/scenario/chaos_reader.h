#pragma once

#include <optional>

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// The part `chaos` of a scenario, or nothing where there is none. `values` are the scalars of the
/// whole scenario by their path (RecordReader::read).
std::optional<Chaos> readChaos(const Node& root, const Parameters& values, Findings& findings);

}  // namespace faultline::scenario

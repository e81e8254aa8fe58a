#pragma once

#include <optional>
#include <string>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// What followed from the scenario's model, for the result; nothing without one. Pure.
std::optional<reports::TrainingFacts> trainingFacts(const scenario::Scenario& scenario);

/// Of a server whose times and bytes are not those of its model: what a reader must know of that.
/// Empty otherwise. Pure.
std::string scaleOfServer(const scenario::Scenario& scenario);

}  // namespace faultline::run

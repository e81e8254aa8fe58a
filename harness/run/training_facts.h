#pragma once

#include <optional>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// What followed from the scenario's model, for the result; nothing without one. Pure.
std::optional<reports::TrainingFacts> trainingFacts(const scenario::Scenario& scenario);

}  // namespace faultline::run

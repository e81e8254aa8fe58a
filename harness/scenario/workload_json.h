#pragma once

#include <nlohmann/json.hpp>

#include "harness/scenario/scenario.h"

/// `workload` of a scenario as JSON that the reader takes: a function for each kind.
namespace faultline::scenario {

nlohmann::ordered_json trainingJson(const Workload& workload);
nlohmann::ordered_json sweepJson(const Workload& workload);
nlohmann::ordered_json serverJson(const Workload& workload);
nlohmann::ordered_json commandJson(const Workload& workload);

}  // namespace faultline::scenario

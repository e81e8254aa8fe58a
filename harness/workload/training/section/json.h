#pragma once

#include <nlohmann/json.hpp>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

nlohmann::ordered_json trainingJson(const Workload& workload);
/// The keys that say what a model is and how it is divided.
void addModel(const model::Training& training, nlohmann::ordered_json& workload);

}  // namespace faultline::scenario

#pragma once

#include <nlohmann/json.hpp>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

nlohmann::ordered_json commandJson(const Workload& workload);

}  // namespace faultline::scenario

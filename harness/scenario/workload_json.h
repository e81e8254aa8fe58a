#pragma once

#include <nlohmann/json.hpp>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What `workload` has of kinds with iterations or calls: kind, iterations, warm-up and time.
nlohmann::ordered_json iterationsJson(const Workload& workload);

}  // namespace faultline::scenario

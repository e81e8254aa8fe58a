#pragma once

#include <nlohmann/json.hpp>

namespace faultline::scenario {

/// A JSON Schema (draft 2020-12) of scenarios, made from the tables that the reader uses. Editors
/// complete and check with it; what values mean together only the reader checks.
nlohmann::ordered_json scenarioSchema();

}  // namespace faultline::scenario

#pragma once

#include <nlohmann/json.hpp>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// The scenario as read, defaults filled in, in the shape and spelling of the YAML: the reader
/// accepts the text again and makes the same scenario of it.
nlohmann::ordered_json toJson(const Scenario& scenario);

/// One fault; of those that a fault process means, with its "moments".
nlohmann::ordered_json toJson(const Fault& fault);

/// A card in full, as a scenario may write it.
nlohmann::ordered_json toJson(const model::ModelCard& card);

std::string_view name(DataType type);
std::string_view name(TelemetryMode mode);
std::string_view name(DataKind kind);
std::string_view name(Place place);
std::string_view name(After::Mark mark);
std::string_view name(FaultProcess::Element element);

}  // namespace faultline::scenario

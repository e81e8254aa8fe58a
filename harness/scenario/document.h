#pragma once

#include <optional>
#include <string_view>

#include "base/yaml/document.h"
#include "base/yaml/text_check.h"

/// Scenarios as YAML trees (base/yaml).
namespace faultline::scenario {

using yaml::describe;
using yaml::Document;
using yaml::Entry;
using yaml::locate;
using yaml::Location;
using yaml::Node;
using yaml::oneLine;
using yaml::Problem;
using yaml::shortened;

/// As yaml::checkText, of a scenario.
std::optional<Problem> checkText(std::string_view text, int source);
/// As yaml::parseDocument, of a scenario.
Document parseDocument(std::string_view text, int source);

}  // namespace faultline::scenario

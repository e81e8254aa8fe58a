#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "reports/result.h"

namespace faultline::reports {

/// The result as JSON, `schema` first. Numbers that JSON does not know (NaN, infinity) become
/// null.
Json toJson(const ScenarioResult& result);

/// Reads what toJson wrote. Keys that it does not know are ignored: a newer writer may have added
/// them. Everything else that does not fit is an error that names the place, for example
/// "runs[2].failovers[0].rail: expected an integer, found a string".
faultline::Result<ScenarioResult> fromJson(const Json& json);

/// The text of a result.json. Bytes that are not UTF-8 are replaced, so that it always succeeds.
std::string toJsonText(const ScenarioResult& result);

/// Parses the text of a result.json; an error names line and column, or the key.
faultline::Result<ScenarioResult> parseResult(std::string_view text);

/// Writes `directory`/result.json whole or not at all.
Status writeResult(const ScenarioResult& result, const std::string& directory);

/// Reads `directory`/result.json.
faultline::Result<ScenarioResult> readResult(const std::string& directory);

}  // namespace faultline::reports

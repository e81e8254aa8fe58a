#include "reports/result_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "reports/result_fields.h"

namespace faultline::reports {
namespace {

constexpr const char* kFileName = "/result.json";
std::string scalarText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Readable with any pager: a key per line with one blank for each level, but lists of numbers and
/// words on one line, which are most of a result.
void print(const Json& json, std::size_t level, std::string& text) {
  const bool nested =
      std::ranges::any_of(json, [](const Json& one) { return one.is_structured(); });
  if (!json.is_structured() || json.empty() || (json.is_array() && !nested)) {
    text += scalarText(json);
    return;
  }
  const std::string line = "\n" + std::string(level + 1, ' ');
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += (first ? "" : ",") + line;
    first = false;
    if (json.is_object()) text += scalarText(key) + ": ";
    print(value, level + 1, text);
  }
  text += "\n" + std::string(level, ' ');
  text += json.is_object() ? '}' : ']';
}

Status checkSchema(const Json& json) {
  if (!json.is_object()) return jsonMismatch("result", "an object", json);
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string()) {
    return Status(Code::kInvalidArgument,
                  "schema: is missing; this is not a result of faultline, or it is cut off");
  }
  if (*schema != kResultSchema) {
    return errorf(Code::kUnsupported, "schema: this program reads {}, found {}", kResultSchema,
                  schema->dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return okStatus();
}

}  // namespace

const char* nameOf(Verdict verdict) { return enumName(verdict); }
const char* nameOf(Arm arm) { return enumName(arm); }
const char* nameOf(RunStatus status) { return enumName(status); }
const char* nameOf(Origin origin) { return enumName(origin); }

std::string voidBecause(const ScenarioResult& result) {
  if (result.noise && !result.noise->void_because.empty()) return result.noise->void_because;
  return result.drift ? result.drift->void_because : "";
}

const AppliedPlan* lastPlanOfLargest(const Run& run) {
  const AppliedPlan* found = nullptr;
  for (const AppliedPlan& plan : run.plans) {
    if (plan.collective != AppliedPlan().collective) continue;
    const bool later = found != nullptr && plan.bytes == found->bytes && plan.at_ms >= found->at_ms;
    if (found == nullptr || plan.bytes > found->bytes || later) found = &plan;
  }
  return found;
}

std::string scenarioName(const ScenarioResult& result) {
  const Json& scenario = result.scenario;
  const auto name = scenario.is_object() ? scenario.find("name") : scenario.end();
  if (name == scenario.end() || !name->is_string()) return "unnamed";
  return name->get<std::string>();
}

std::set<std::string> metricNames(const ScenarioResult& result) {
  std::set<std::string> names;
  for (const Run& run : result.runs) {
    for (const auto& [name, value] : run.metrics) names.insert(name);
  }
  return names;
}

Json toJson(const ScenarioResult& result) {
  Json json = Json::object();
  json["schema"] = kResultSchema;
  json.update(JsonWriter<Json>::write(result));
  return json;
}

faultline::Result<ScenarioResult> fromJson(const Json& json) {
  RETURN_IF_ERROR(checkSchema(json));
  ScenarioResult result;
  RETURN_IF_ERROR(JsonReader<Json>::read(json, "", result));
  return result;
}

std::string toJsonText(const ScenarioResult& result) {
  std::string text;
  print(toJson(result), 0, text);
  return text + "\n";
}

faultline::Result<ScenarioResult> parseResult(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, parseJson<Json>(text));
  return fromJson(json);
}

Status writeResult(const ScenarioResult& result, const std::string& directory) {
  return writeFileAtomically(directory + kFileName, toJsonText(result), Sync::kYes,
                             Links::kRefused);
}

faultline::Result<ScenarioResult> readResult(const std::string& directory) {
  const std::string path = directory + kFileName;
  ASSIGN_OR_RETURN(const std::string text, readFile(path));
  faultline::Result<ScenarioResult> result = parseResult(text);
  if (!result.ok()) return result.status().withContext(path);
  return result;
}

}  // namespace faultline::reports

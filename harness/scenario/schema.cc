#include "harness/scenario/schema.h"

#include <algorithm>
#include <string>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/fault_process.h"
#include "harness/scenario/language_table.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

// The spellings of base/units.h as regular expressions.
constexpr std::string_view kDurationPattern = R"(^[0-9]*\.?[0-9]+(ns|us|ms|s|min|h)$)";
constexpr std::string_view kSizePattern = R"(^[0-9]*\.?[0-9]+(B|kB|KiB|MB|MiB|GB|GiB)$)";
constexpr std::string_view kRatePattern = R"(^[0-9]*\.?[0-9]+(bit|kbit|Mbit|Gbit)$)";
constexpr std::string_view kPercentPattern = R"(^[0-9]*\.?[0-9]+%$)";
constexpr std::string_view kRateOrPercentPattern = R"(^[0-9]*\.?[0-9]+(bit|kbit|Mbit|Gbit|%)$)";
constexpr std::string_view kNamePattern = R"(^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$)";
constexpr std::string_view kExpectationPattern =
    R"(^\s*[A-Za-z0-9_.-]+((\s*(==|!=|<=|>=|<|>)\s*[^\s=!<>]+)+\s*|\s+contains\s.*\S.*|\s*(==|!=)\s*(".*"|'.*'))$)";

Json pattern(std::string_view expression) { return {{"type", "string"}, {"pattern", expression}}; }

Json schemaOfType(const ParameterSpec& spec) {
  switch (spec.type) {
    case ParameterType::kDuration:
      return pattern(kDurationPattern);
    case ParameterType::kSize:
      return pattern(kSizePattern);
    case ParameterType::kRate:
      return pattern(kRatePattern);
    case ParameterType::kPercent:
      return pattern(kPercentPattern);
    case ParameterType::kRateOrPercent:
      return pattern(kRateOrPercentPattern);
    case ParameterType::kName:
      return pattern(kNamePattern);
    case ParameterType::kFlag:
      return {{"type", "boolean"}};
    case ParameterType::kDecimal: {
      Json schema{{"type", "number"}};
      if (spec.bounded()) {
        schema["minimum"] = spec.minimum;
        schema["maximum"] = spec.maximum;
      }
      return schema;
    }
    case ParameterType::kText:
    case ParameterType::kCommand:
      return {{"type", "string"}};
    case ParameterType::kEnum: {
      Json schema{
          {"enum", Json(std::vector<std::string>(spec.choices.begin(), spec.choices.end()))}};
      if (std::ranges::count(spec.choices, kNullWord) > 0) schema["enum"].push_back(nullptr);
      return schema;
    }
    case ParameterType::kInteger: {
      Json schema{{"type", "integer"}};
      if (spec.bounded()) {
        schema["minimum"] = static_cast<std::int64_t>(spec.minimum);
        schema["maximum"] = static_cast<std::int64_t>(spec.maximum);
      }
      return schema;
    }
  }
  return Json::object();
}

/// A default as JSON: numbers and flags as such.
Json defaultOf(const ParameterSpec& spec) {
  const auto value = parseParameter(spec, spec.defaultText);
  if (!value.ok()) return spec.defaultText;
  if (const auto* number = std::get_if<std::int64_t>(&*value)) return *number;
  if (const auto* decimal = std::get_if<double>(&*value)) return *decimal;
  if (const auto* flag = std::get_if<bool>(&*value)) return *flag;
  return spec.defaultText;
}

Json schemaOf(const ParameterSpec& spec) {
  Json schema = schemaOfType(spec);
  std::string description(spec.meaning);
  const bool has_unit = schema.contains("pattern");
  if (has_unit && spec.bounded()) {
    description += fmt::format(" ({} to {})", formatBound(spec, spec.minimum),
                               formatBound(spec, spec.maximum));
  }
  schema["description"] = description;
  if (!spec.defaultText.empty()) schema["default"] = defaultOf(spec);
  return schema;
}

Json object() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

void addParameters(Json& schema, std::span<const ParameterSpec> specs) {
  for (const ParameterSpec& spec : specs) {
    schema["properties"][std::string(spec.name)] = schemaOf(spec);
    if (spec.required()) schema["required"].push_back(spec.name);
  }
}

/// Text, as which numbers and flags may stand too.
Json anyScalar() { return {{"type", {"string", "number", "boolean"}}}; }

Json mapOf(std::string_view meaning, Json values) {
  return {
      {"type", "object"}, {"description", meaning}, {"additionalProperties", std::move(values)}};
}

Json computeSchema(const ParameterSpec& spec) {
  Json burn = object();
  burn["properties"][std::string(kBurn)] = schemaOf(spec);
  burn["required"] = {kBurn};
  return {{"description", spec.meaning}, {"oneOf", {schemaOfType(spec), std::move(burn)}}};
}

/// A name, or {name: {parameter: value}}.
Json choiceSchema() { return {{"oneOf", {Json{{"enum", Json::array()}}}}}; }

void addChoice(Json& schema, std::string_view name, std::string_view summary,
               std::span<const ParameterSpec> specs, const baseline::StrategySpec* row = nullptr) {
  Json parameters = object();
  parameters["type"] = {"object", "null"};
  parameters["description"] = summary;
  addParameters(parameters, specs);
  if (row != nullptr) {
    const ParameterSpec& content = baseline::contentSpec();
    if (row->written) parameters["properties"][std::string(content.name)] = schemaOf(content);
    const ParameterSpec& row_name = baseline::rowNameSpec();
    parameters["properties"][std::string(row_name.name)] = schemaOf(row_name);
    const ParameterSpec& environment = baseline::rowEnvironmentSpec();
    parameters["properties"][std::string(environment.name)] =
        mapOf(environment.meaning, anyScalar());
  }
  const bool complete = !parameters.contains("required");
  if (complete) schema["oneOf"][0]["enum"].push_back(name);
  Json named = object();
  named["properties"][std::string(name)] = std::move(parameters);
  named["required"] = {name};
  schema["oneOf"].push_back(std::move(named));
}

Json strategySchema() {
  Json schema = choiceSchema();
  for (const auto& strategy : baseline::strategies()) {
    addChoice(schema, strategy.name, strategy.summary, strategy.options, &strategy);
  }
  return schema;
}

Json faultKindsSchema() {
  Json schema = choiceSchema();
  for (const auto& kind : injector::faultKinds()) {
    if (!canBeRandom(kind)) continue;
    std::vector<ParameterSpec> specs(kind.parameters.begin(), kind.parameters.end());
    specs.push_back(weightSpec());
    addChoice(schema, kind.name, injector::summaryOf(kind), specs);
  }
  return schema;
}

Json recordSchema(const Record& record);

/// Exactly one of the two keys.
Json eitherKey(std::initializer_list<std::string_view> keys) {
  Json either{{"oneOf", Json::array()}};
  for (const std::string_view key : keys) either["oneOf"].push_back(Json{{"required", {key}}});
  return either;
}

Json faultSchema() {
  Json schema{{"type", "object"}, {"required", {"kind"}}, {"oneOf", Json::array()}};
  for (const auto& kind : injector::faultKinds()) {
    Json one = recordSchema(faultTable());
    one["description"] = injector::summaryOf(kind);
    one["properties"]["kind"] = {{"const", kind.name}, {"description", one["description"]}};
    one["required"] = {"kind"};
    if (kind.target != injector::TargetKind::kNone) one["required"].push_back("target");
    addParameters(one, kind.parameters);
    one["properties"]["target"].update(eitherKey({"node", "rail_group"}));
    one["allOf"] = {eitherKey({"at", "during", "before"}), eitherKey({"duration", "until"})};
    schema["oneOf"].push_back(std::move(one));
  }
  return schema;
}

/// A fault of a sequence. Its kind's parameters, which `faults` has in full, are left to the
/// reader.
Json stepSchema() {
  Json schema = recordSchema(faultTable());
  schema.erase("additionalProperties");
  schema["description"] = stepTable().meaning;
  schema["properties"]["kind"] = schemaOf(faultKindSpec());
  schema["properties"].update(recordSchema(stepTable())["properties"]);
  for (const char* const key : {"times", "every", "before"}) schema["properties"].erase(key);
  schema["required"] = {"kind"};
  schema["allOf"] = {eitherKey({"at", "during", "after"}), eitherKey({"duration", "until"})};
  return schema;
}

Json list(const Field& field, Json items) {
  return {{"type", "array"},
          {"description", field.spec.meaning},
          {"minItems", field.required ? 1 : 0},
          {"items", std::move(items)}};
}

Json fieldSchema(const Field& field) {
  switch (field.shape) {
    case Shape::kScalar:
      return schemaOf(field.spec);
    case Shape::kRecord:
      return recordSchema(*field.record);
    case Shape::kCompute:
      return computeSchema(field.spec);
    case Shape::kStrategies:
      return list(field, strategySchema());
    case Shape::kFaults:
      return list(field, faultSchema());
    case Shape::kSteps:
      return list(field, stepSchema());
    case Shape::kRecords:
      return list(field, recordSchema(*field.record));
    case Shape::kFaultKinds:
      return list(field, faultKindsSchema());
    case Shape::kCard: {
      Json schema = schemaOf(field.spec);
      Json description = std::move(schema["description"]);
      schema.erase("description");
      return {{"description", std::move(description)},
              {"oneOf", {std::move(schema), recordSchema(*field.record)}}};
    }
    case Shape::kList: {
      Json items = schemaOfType(field.spec);
      Json schema{{"description", field.spec.meaning}};
      if (!field.spec.defaultText.empty()) schema["default"] = defaultOf(field.spec);
      schema["oneOf"] = {items, Json{{"type", "array"}, {"minItems", 1}, {"items", items}}};
      return schema;
    }
    case Shape::kRails: {
      const Json names{{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}}}};
      Json number = schemaOf(field.spec);
      Json description = std::move(number["description"]);
      number.erase("description");
      return {{"description", std::move(description)},
              {"oneOf",
               {std::move(number), Json{{"const", kAutomatic}}, names,
                Json{{"type", "object"}, {"additionalProperties", names}}}}};
    }
    case Shape::kWords:
      return list(field, anyScalar());
    case Shape::kTexts:
      return mapOf(field.spec.meaning, anyScalar());
    case Shape::kMetrics: {
      Json metric = recordSchema(*field.record);
      metric["oneOf"] = {Json{{"required", {"regex"}}}, Json{{"required", {"json", "path"}}}};
      return mapOf(field.spec.meaning, std::move(metric));
    }
    case Shape::kExpectations:
      return list(field, pattern(kExpectationPattern));
  }
  return Json::object();
}

Json recordSchema(const Record& record) {
  Json schema = object();
  schema["description"] = record.meaning;
  for (const Field& field : record.fields) {
    schema["properties"][std::string(field.spec.name)] = fieldSchema(field);
    if (field.required) schema["required"].push_back(field.spec.name);
  }
  return schema;
}

}  // namespace

Json scenarioSchema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Faultline scenario"}};
  schema.update(recordSchema(scenarioTable()));
  return schema;
}

}  // namespace faultline::scenario

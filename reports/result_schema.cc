#include "reports/result_schema.h"

#include <concepts>
#include <type_traits>

#include "reports/result_fields.h"

namespace faultline::reports {
namespace {

/// Walks the fields of a struct and collects what their types are in JSON.
class SchemaVisitor {
 public:
  template <typename T>
  static Json of(const T& sample) {
    if constexpr (std::is_enum_v<T>) {
      Json names = Json::array();
      for (const auto& entry : namesOf(sample)) names.push_back(entry.name);
      return {{"type", "string"}, {"enum", std::move(names)}};
    } else if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_floating_point_v<T>) {
      // NaN and infinity are written as null.
      return {{"type", Json::array({"number", "null"})}};
    } else if constexpr (std::unsigned_integral<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::integral<T>) {
      return {{"type", "integer"}};
    } else if constexpr (std::is_same_v<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (std::is_same_v<T, Json>) {
      return Json::object();  // anything
    } else if constexpr (std::is_same_v<T, Interval>) {
      return {{"type", "array"}, {"items", of(sample.lo)}, {"minItems", 2}, {"maxItems", 2}};
    } else {
      SchemaVisitor visitor;
      visitFields(visitor, sample);
      return std::move(visitor).finish();
    }
  }
  template <typename T>
  static Json of(const std::optional<T>& /*sample*/) {
    Json inner = of(T{});
    return {{"anyOf", Json::array({{{"type", "null"}}, std::move(inner)})}};
  }
  template <typename T>
  static Json of(const std::vector<T>& /*sample*/) {
    return {{"type", "array"}, {"items", of(T{})}};
  }
  template <typename T>
  static Json of(const std::map<std::string, T>& /*sample*/) {
    return {{"type", "object"}, {"additionalProperties", of(T{})}};
  }

  template <typename T>
  void required(const char* key, const T& sample) {
    required_.push_back(key);
    field(key, sample);
  }
  template <typename T>
  void field(const char* key, const T& sample) {
    properties_[key] = of(sample);
  }

 private:
  Json finish() && {
    Json schema{{"type", "object"}, {"properties", std::move(properties_)}};
    if (!required_.empty()) schema["required"] = std::move(required_);
    return schema;
  }

  Json properties_ = Json::object();
  Json required_ = Json::array();
};

}  // namespace

Json resultSchema() {
  Json schema{
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "result.json of faultline"},
      {"description",
       "What one `faultline run` found out. Times are milliseconds from the start of their "
       "run, bytes are bytes; null: did not happen, or too few samples to say. docs/report.md "
       "explains it, reports/result.h each key."}};
  schema.update(SchemaVisitor::of(ScenarioResult{}));
  Json properties{{"schema", {{"const", kResultSchema}}}};
  properties.update(schema["properties"]);
  schema["properties"] = std::move(properties);
  // The keys that scripts may use are always there (the contract of the output directory).
  schema["required"] = {"schema",  "scenario", "seed",    "environment",
                        "verdict", "runs",     "summary", "expectations"};
  return schema;
}

}  // namespace faultline::reports

#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_fields.h"

namespace faultline {

/// `JsonSchemaOf<Json>::of(T{})`: what a JSON Schema (draft 7) says of the JSON that JsonWriter
/// makes of a T, and a JsonReader of that strictness takes.
template <typename Json, Strictness kStrictness = Strictness::kLater>
class JsonSchemaOf {
 public:
  template <typename T>
  static Json of(const T& sample) {
    if constexpr (Named<T>) {
      Json names = Json::array();
      for (const auto& entry : namesOf(sample)) names.push_back(entry.name);
      return {{"type", "string"}, {"enum", std::move(names)}};
    } else if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_floating_point_v<T>) {
      if (kStrictness == Strictness::kExact) return {{"type", "number"}};
      // NaN and infinity are written as null.
      return {{"type", Json::array({"number", "null"})}};
    } else if constexpr (std::unsigned_integral<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::integral<T> || std::is_same_v<T, TimePoint> ||
                         std::is_same_v<T, Duration>) {
      return {{"type", "integer"}};
    } else if constexpr (std::is_same_v<T, std::string> || Hexadecimal<T>) {
      return {{"type", "string"}};
    } else if constexpr (nlohmann::detail::is_basic_json<T>::value) {
      return Json::object();  // anything
    } else if constexpr (requires { sample.lo, sample.hi; }) {
      return {{"type", "array"}, {"items", of(sample.lo)}, {"minItems", 2}, {"maxItems", 2}};
    } else {
      JsonSchemaOf visitor;
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
  template <typename... Ts>
  static Json of(const std::variant<Ts...>& /*sample*/) {
    Json any = Json::array();
    (any.push_back(ofType(Ts{})), ...);
    return {{"oneOf", std::move(any)}};
  }

  template <typename T>
  void required(const char* key, const T& sample, const NumberRange& range = {}) {
    required_.push_back(key);
    field(key, sample);
    limit(properties_[key], range);
  }
  template <typename T>
  void field(const char* key, const T& sample) {
    properties_[key] = of(sample);
  }

 private:
  /// The numbers of this schema; those of a struct have ranges of their own.
  static void limit(Json& schema, const NumberRange& range) {
    if (schema.contains("anyOf")) {
      for (Json& one : schema["anyOf"]) limit(one, range);
    }
    if (schema.contains("items")) limit(schema["items"], range);
    if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
      limit(schema["additionalProperties"], range);
    }
    if (schema.contains("properties") || !schema.contains("type")) return;
    if (schema["type"] != "integer" && schema["type"] != "number") return;
    if (range.least != -NumberRange::kInfinity) schema["minimum"] = numberOf(range.least);
    if (range.most != NumberRange::kInfinity) schema["maximum"] = numberOf(range.most);
  }

  static Json numberOf(double value) {
    const auto whole = static_cast<std::int64_t>(value);
    return static_cast<double>(whole) == value ? Json(whole) : Json(value);
  }

  template <typename T>
  static Json ofType(const T& sample) {
    JsonSchemaOf visitor;
    visitor.properties_[kTypeKey] = {{"const", T::kType}};
    visitor.required_.push_back(kTypeKey);
    visitFields(visitor, sample);
    return std::move(visitor).finish();
  }

  Json finish() && {
    Json schema{{"type", "object"}, {"properties", std::move(properties_)}};
    if (!required_.empty()) schema["required"] = std::move(required_);
    if constexpr (kStrictness != Strictness::kLater) schema["additionalProperties"] = false;
    return schema;
  }

  Json properties_ = Json::object();
  Json required_ = Json::array();
};

}  // namespace faultline

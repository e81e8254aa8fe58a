#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

/// As much of JSON Schema (draft 7) as base/json_schema.h uses. A keyword that it does not
/// know is an exception, so that none is passed over in silence.
namespace faultline::testing {

using SchemaJson = nlohmann::ordered_json;

inline bool isOfType(const SchemaJson& json, const std::string& type) {
  if (type == "null") return json.is_null();
  if (type == "boolean") return json.is_boolean();
  if (type == "integer") return json.is_number_integer();
  if (type == "number") return json.is_number();
  if (type == "string") return json.is_string();
  if (type == "array") return json.is_array();
  if (type == "object") return json.is_object();
  throw std::runtime_error("unknown type " + type);
}

/// What is wrong with `json`, at most one line per place: "runs[0].arm: ...".
inline std::vector<std::string> schemaViolations(const SchemaJson& schema, const SchemaJson& json,
                                                 const std::string& path = "") {
  std::vector<std::string> wrong;
  const auto say = [&](const std::string& what) { wrong.push_back(path + ": " + what); };
  const auto descend = [&](const SchemaJson& inner, const SchemaJson& value,
                           const std::string& at) {
    const auto more = schemaViolations(inner, value, path + at);
    wrong.insert(wrong.end(), more.begin(), more.end());
  };
  const auto types = [](const SchemaJson& type) {
    return type.is_array() ? type.get<std::vector<std::string>>()
                           : std::vector<std::string>{type.get<std::string>()};
  };
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword == "type") {
      const auto known = types(value);
      const auto fits = [&](const std::string& type) { return isOfType(json, type); };
      if (std::ranges::none_of(known, fits)) say("is " + std::string(json.type_name()));
    } else if (keyword == "enum") {
      if (std::ranges::find(value, json) == value.end()) say("is none of " + value.dump());
    } else if (keyword == "const") {
      if (json != value) say("is not " + value.dump());
    } else if (keyword == "minimum") {
      if (json.is_number() && json < value) say("is below " + value.dump());
    } else if (keyword == "maximum") {
      if (json.is_number() && json > value) say("is above " + value.dump());
    } else if (keyword == "minItems") {
      if (json.is_array() && json.size() < value) say("has too few items");
    } else if (keyword == "maxItems") {
      if (json.is_array() && json.size() > value) say("has too many items");
    } else if (keyword == "items") {
      for (std::size_t i = 0; json.is_array() && i < json.size(); ++i) {
        descend(value, json[i], fmt::format("[{}]", i));
      }
    } else if (keyword == "properties") {
      for (const auto& [key, inner] : value.items()) {
        if (json.is_object() && json.contains(key)) descend(inner, json[key], "." + key);
      }
    } else if (keyword == "additionalProperties") {
      if (!json.is_object()) continue;
      for (const auto& [key, inner] : json.items()) {
        if (schema.contains("properties") && schema["properties"].contains(key)) continue;
        if (value.is_boolean() && !value.get<bool>()) say("has an unknown key " + key);
        if (value.is_object()) descend(value, inner, "." + key);
      }
    } else if (keyword == "required") {
      for (const auto& key : value) {
        if (json.is_object() && !json.contains(key)) say("lacks " + key.dump());
      }
    } else if (keyword == "anyOf") {
      const auto fits = [&](const SchemaJson& one) { return schemaViolations(one, json).empty(); };
      if (std::ranges::none_of(value, fits)) say("fits none of the alternatives: " + json.dump());
    } else if (keyword == "oneOf") {
      const auto fits = [&](const SchemaJson& one) { return schemaViolations(one, json).empty(); };
      if (std::ranges::count_if(value, fits) != 1) say("fits none or several: " + json.dump());
    } else if (keyword != "$schema" && keyword != "title" && keyword != "description") {
      throw std::runtime_error("unknown keyword " + keyword);
    }
  }
  return wrong;
}

}  // namespace faultline::testing

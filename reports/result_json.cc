#include "reports/result_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/json.h"
#include "reports/result_fields.h"

namespace faultline::reports {
namespace {

constexpr const char* kFileName = "/result.json";
template <typename E>
const char* enumName(E value) {
  for (const auto& entry : namesOf(value)) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

// --- writing

class Writer {
 public:
  template <typename T>
  static Json write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return enumName(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? Json(value) : Json(nullptr);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                         std::is_same_v<T, Json>) {
      return value;
    } else if constexpr (requires { value.lo, value.hi; }) {
      return Json::array({write(value.lo), write(value.hi)});
    } else {
      Writer writer;
      visitFields(writer, value);
      return std::move(writer.object_);
    }
  }
  template <typename T>
  static Json write(const std::optional<T>& value) {
    return value ? write(*value) : Json(nullptr);
  }
  template <typename T>
  static Json write(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(write(value));
    return array;
  }
  template <typename T>
  static Json write(const std::map<std::string, T>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) object[key] = write(value);
    return object;
  }

  template <typename T>
  void required(const char* key, const T& value) {
    field(key, value);
  }
  template <typename T>
  void field(const char* key, const T& value) {
    object_[key] = write(value);
  }

 private:
  Json object_ = Json::object();
};

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

// --- reading

Status expected(const std::string& path, std::string_view what, const Json& found) {
  return errorf(Code::kInvalidArgument, "{}: expected {}, found {} {}", path, what,
                found.is_array() || found.is_object() ? "an" : "a", found.type_name());
}

/// One `read` per kind of value, in a class so that all of them see each other. `path` names the
/// value in messages.
class Reader {
 public:
  static Status read(const Json& json, const std::string& path, bool& value) {
    if (!json.is_boolean()) return expected(path, "true or false", json);
    value = json.get<bool>();
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, double& value) {
    // The writer writes null for what JSON has no number for.
    if (json.is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
      return okStatus();
    }
    if (!json.is_number()) return expected(path, "a number", json);
    value = json.get<double>();
    return okStatus();
  }

  template <std::integral T>
  static Status read(const Json& json, const std::string& path, T& value) {
    if (!json.is_number_integer()) return expected(path, "an integer", json);
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : std::in_range<T>(json.get<std::int64_t>());
    if (!fits) return errorf(Code::kInvalidArgument, "{}: {} is out of range", path, json.dump());
    value = json.get<T>();
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, std::string& value) {
    if (!json.is_string()) return expected(path, "a string", json);
    value = json.get<std::string>();
    return okStatus();
  }

  static Status read(const Json& json, const std::string& /*path*/, Json& value) {
    value = json;
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, Interval& value) {
    if (!json.is_array() || json.size() != 2) {
      return expected(path, "an array of two numbers [lo, hi]", json);
    }
    RETURN_IF_ERROR(read(json[0], path + "[0]", value.lo));
    return read(json[1], path + "[1]", value.hi);
  }

  template <typename E>
  requires std::is_enum_v<E>
  static Status read(const Json& json, const std::string& path, E& value) {
    std::string names;
    for (const auto& entry : namesOf(value)) {
      if (json.is_string() && json.get_ref<const std::string&>() == entry.name) {
        value = entry.value;
        return okStatus();
      }
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    return errorf(Code::kInvalidArgument, "{}: expected one of {}, found {}", path, names,
                  json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  template <typename T>
  static Status read(const Json& json, const std::string& path, std::optional<T>& value) {
    if (json.is_null()) {
      value.reset();
      return okStatus();
    }
    return read(json, path, value.emplace());
  }

  template <typename T>
  static Status read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) return expected(path, "an array", json);
    values.clear();
    values.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
      RETURN_IF_ERROR(read(json[i], fmt::format("{}[{}]", path, i), values[i]));
    }
    return okStatus();
  }

  template <typename T>
  static Status read(const Json& json, const std::string& path, std::map<std::string, T>& values) {
    if (!json.is_object()) return expected(path, "an object", json);
    values.clear();
    for (const auto& [key, value] : json.items()) {
      RETURN_IF_ERROR(read(value, path + "." + key, values[key]));
    }
    return okStatus();
  }

  /// The structs of the model, by their table of fields.
  template <typename T>
  requires std::is_class_v<T>
  static Status read(const Json& json, const std::string& path, T& value) {
    if (!json.is_object()) return expected(path.empty() ? "result" : path, "an object", json);
    Reader reader(json, path);
    visitFields(reader, value);
    return reader.status_;
  }

  template <typename T>
  void required(const char* key, T& value) {
    take(key, value, true);
  }
  template <typename T>
  void field(const char* key, T& value) {
    take(key, value, false);
  }

 private:
  Reader(const Json& object, const std::string& path) : object_(object), path_(path) {}

  template <typename T>
  void take(const char* key, T& value, bool required) {
    if (!status_.ok()) return;
    const std::string path = path_.empty() ? key : path_ + "." + key;
    const auto found = object_.find(key);
    if (found != object_.end()) {
      status_ = read(*found, path, value);
    } else if (required) {
      status_ = errorf(Code::kInvalidArgument, "{}: is missing", path);
    }
  }

  const Json& object_;
  const std::string& path_;
  Status status_;
};

Status checkSchema(const Json& json) {
  if (!json.is_object()) return expected("result", "an object", json);
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
  json.update(Writer::write(result));
  return json;
}

faultline::Result<ScenarioResult> fromJson(const Json& json) {
  RETURN_IF_ERROR(checkSchema(json));
  ScenarioResult result;
  RETURN_IF_ERROR(Reader::read(json, "", result));
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

#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/enum_names.h"
#include "base/number_range.h"
#include "base/status.h"

/// Structs <-> JSON by one table of fields for each struct, so that writer, reader and schema
/// cannot drift apart. The table is a function beside the struct:
///
///     template <typename V>
///     void visitFields(V& v, Of<Point> auto& point) {
///       v.required("x", point.x);
///       v.field("y", point.y);
///     }
///
/// `required`: an object without the key is refused; `field`: the member keeps its default. What a
/// number may be stands behind it: `v.required("x", point.x, kNotNegative)`. An enum has
/// `namesOf(value)`, the list of its values and their names. Moments and durations are whole
/// nanoseconds; a number that JSON has no word for (NaN, infinity) is null. A variant is one of
/// several structs, each with its name in `kType`, which is the value of the key "type". Where the
/// fields must agree with each other, `Status checkFields(value)` beside the table says so.
namespace faultline {

/// T is U or const U: the same table serves reading and writing.
template <typename T, typename U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

/// The key of a variant's object that says which it is.
inline constexpr const char* kTypeKey = "type";

/// Bytes that are written as hexadecimal digits.
template <typename T>
concept Hexadecimal = requires(const T& value, const std::string& text) {
  { value.hex() } -> std::convertible_to<std::string>;
  { T::fromHex(text) } -> std::same_as<Result<T>>;
};

/// `JsonWriter<Json>::write(value)`; `Json`: nlohmann::json, or its ordered sister.
template <typename Json>
class JsonWriter {
 public:
  template <typename T>
  static Json write(const T& value) {
    if constexpr (Named<T>) {
      return enumName(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? Json(value) : Json(nullptr);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                         nlohmann::detail::is_basic_json<T>::value) {
      return Json(value);
    } else if constexpr (std::is_same_v<T, TimePoint>) {
      return value.time_since_epoch().count();
    } else if constexpr (std::is_same_v<T, Duration>) {
      return value.count();
    } else if constexpr (Hexadecimal<T>) {
      return value.hex();
    } else if constexpr (requires { value.lo, value.hi; }) {
      return Json::array({write(value.lo), write(value.hi)});
    } else {
      JsonWriter writer;
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
  template <typename... Ts>
  static Json write(const std::variant<Ts...>& value) {
    return std::visit(
        []<typename T>(const T& one) {
          Json object{{kTypeKey, T::kType}};
          object.update(write(one));
          return object;
        },
        value);
  }

  template <typename T>
  void required(const char* key, const T& value, const NumberRange& /*range*/ = {}) {
    field(key, value);
  }
  template <typename T>
  void field(const char* key, const T& value) {
    object_[key] = write(value);
  }

 private:
  Json object_ = Json::object();
};

/// What stands at `path` is not what should.
template <typename Json>
Status jsonMismatch(const std::string& path, std::string_view what, const Json& found) {
  return errorf(Code::kInvalidArgument, "{}: expected {}, found {} {}", path, what,
                found.is_array() || found.is_object() ? "an" : "a", found.type_name());
}

/// What a reader takes.
enum class Strictness {
  kLater,      ///< also keys that the table of a struct does not have: they are of a later version
  kKnownKeys,  ///< no such keys
  kExact,      ///< nor null for a number that is not optional
};

/// One `read` per kind of value, in a class so that all of them see each other. `path` names the
/// value in messages. kInvalidArgument, with the path, for what does not fit.
template <typename Json, Strictness kStrictness = Strictness::kLater>
class JsonReader {
 public:
  static Status read(const Json& json, const std::string& path, bool& value) {
    if (!json.is_boolean()) return jsonMismatch(path, "true or false", json);
    value = json.template get<bool>();
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, double& value) {
    // The writer writes null for what JSON has no number for.
    if (json.is_null() && kStrictness != Strictness::kExact) {
      value = std::numeric_limits<double>::quiet_NaN();
      return okStatus();
    }
    if (!json.is_number()) return jsonMismatch(path, "a number", json);
    value = json.template get<double>();
    return okStatus();
  }

  template <std::integral T>
  static Status read(const Json& json, const std::string& path, T& value) {
    if (!json.is_number_integer()) return jsonMismatch(path, "an integer", json);
    const bool fits = json.is_number_unsigned()
                          ? std::in_range<T>(json.template get<std::uint64_t>())
                          : std::in_range<T>(json.template get<std::int64_t>());
    if (!fits) return errorf(Code::kInvalidArgument, "{}: {} is out of range", path, json.dump());
    value = json.template get<T>();
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, std::string& value) {
    if (!json.is_string()) return jsonMismatch(path, "a string", json);
    value = json.template get<std::string>();
    return okStatus();
  }

  /// Anything.
  template <typename T>
  requires nlohmann::detail::is_basic_json<T>::value static Status read(const Json& json,
                                                                        const std::string& /*path*/,
                                                                        T& value) {
    value = T(json);
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, TimePoint& value) {
    Duration since{};
    RETURN_IF_ERROR(read(json, path, since));
    value = TimePoint(since);
    return okStatus();
  }

  static Status read(const Json& json, const std::string& path, Duration& value) {
    Duration::rep nanoseconds = 0;
    RETURN_IF_ERROR(read(json, path, nanoseconds));
    value = Duration(nanoseconds);
    return okStatus();
  }

  template <Hexadecimal T>
  static Status read(const Json& json, const std::string& path, T& value) {
    std::string text;
    RETURN_IF_ERROR(read(json, path, text));
    Result<T> made = T::fromHex(text);
    if (!made.ok()) return made.status().withContext(path);
    value = *std::move(made);
    return okStatus();
  }

  /// [lo, hi]
  template <typename T>
  requires requires(T interval) { interval.lo, interval.hi; }
  static Status read(const Json& json, const std::string& path, T& value) {
    if (!json.is_array() || json.size() != 2) {
      return jsonMismatch(path, "an array of two numbers [lo, hi]", json);
    }
    RETURN_IF_ERROR(read(json[0], path + "[0]", value.lo));
    return read(json[1], path + "[1]", value.hi);
  }

  template <Named E>
  static Status read(const Json& json, const std::string& path, E& value) {
    std::string names;
    for (const auto& entry : namesOf(value)) {
      if (json.is_string() && json.template get_ref<const std::string&>() == entry.name) {
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

  template <typename... Ts>
  static Status read(const Json& json, const std::string& path, std::variant<Ts...>& value) {
    std::string type;
    RETURN_IF_ERROR(typeOf(json, path, type));
    Status status;
    const auto isOne = [&]<typename T>(T* /*which*/) {
      if (type != T::kType) return false;
      // A message as a whole is called by its type.
      status = readStruct(json, path.empty() ? type : path, value.template emplace<T>(), true);
      return true;
    };
    if ((isOne(static_cast<Ts*>(nullptr)) || ...)) return status;
    std::string names;
    ((names += (names.empty() ? "" : ", ") + std::string(Ts::kType)), ...);
    return errorf(Code::kInvalidArgument, "{}: expected one of {}, found \"{}\"",
                  keyIn(path, kTypeKey), names, type);
  }

  template <typename T>
  static Status read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) return jsonMismatch(path, "an array", json);
    values.clear();  // and not made longer before what is to be in it was looked at
    for (std::size_t i = 0; i < json.size(); ++i) {
      T value{};
      RETURN_IF_ERROR(read(json[i], fmt::format("{}[{}]", path, i), value));
      values.push_back(std::move(value));
    }
    return okStatus();
  }

  template <typename T>
  static Status read(const Json& json, const std::string& path, std::map<std::string, T>& values) {
    if (!json.is_object()) return jsonMismatch(path, "an object", json);
    values.clear();
    for (const auto& [key, value] : json.items()) {
      RETURN_IF_ERROR(read(value, path + "." + key, values[key]));
    }
    return okStatus();
  }

  /// Structs, by their table of fields.
  template <typename T>
  requires(std::is_class_v<T> && !nlohmann::detail::is_basic_json<T>::value && !Hexadecimal<T> &&
           !requires(T interval) { interval.lo, interval.hi; }) static Status
      read(const Json& json, const std::string& path, T& value) {
    return readStruct(json, path, value, /*typed=*/false);
  }

  template <typename T>
  void required(const char* key, T& value) {
    take(key, value, true);
  }
  template <typename T>
  void required(const char* key, T& value, const NumberRange& range) {
    take(key, value, true);
    if (status_.ok()) status_ = RangeCheck::check(value, range, keyIn(path_, key));
  }
  template <typename T>
  void field(const char* key, T& value) {
    take(key, value, false);
  }

 private:
  JsonReader(const Json& object, const std::string& path) : object_(object), path_(path) {}

  static std::string keyIn(const std::string& path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }

  static Status typeOf(const Json& json, const std::string& path, std::string& type) {
    if (!json.is_object()) return jsonMismatch(path.empty() ? "document" : path, "an object", json);
    const auto found = json.find(kTypeKey);
    if (found != json.end()) return read(*found, keyIn(path, kTypeKey), type);
    return errorf(Code::kInvalidArgument, "{}: is missing", keyIn(path, kTypeKey));
  }

  template <typename T>
  static Status readStruct(const Json& json, const std::string& path, T& value, bool typed) {
    if (!json.is_object()) return jsonMismatch(path.empty() ? "document" : path, "an object", json);
    JsonReader reader(json, path);
    if (typed) reader.known_.emplace_back(kTypeKey);
    visitFields(reader, value);
    RETURN_IF_ERROR(reader.status_);
    if constexpr (kStrictness != Strictness::kLater) RETURN_IF_ERROR(reader.refuseOthers());
    if constexpr (requires { checkFields(value); }) {
      return checkFields(value).withContext(path.empty() ? "document" : path);
    }
    return okStatus();
  }

  Status refuseOthers() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      return errorf(Code::kInvalidArgument, "{}: is unknown", keyIn(path_, key));
    }
    return okStatus();
  }

  template <typename T>
  void take(const char* key, T& value, bool required) {
    if constexpr (kStrictness != Strictness::kLater) known_.emplace_back(key);
    if (!status_.ok()) return;
    const std::string path = keyIn(path_, key);
    const auto found = object_.find(key);
    if (found != object_.end()) {
      status_ = read(*found, path, value);
    } else if (required) {
      status_ = errorf(Code::kInvalidArgument, "{}: is missing", path);
    }
  }

  const Json& object_;
  const std::string& path_;
  std::vector<std::string_view> known_;  // keys of the table
  Status status_;
};

}  // namespace faultline

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"

namespace faultline {

/// A share of something, 0.25 for "25%".
struct Fraction {
  double value = 0;
  auto operator<=>(const Fraction&) const = default;
};

/// What a parameter's value is; decides how text is read, which unit it needs, how it is printed.
enum class ParameterType {
  kFlag,           ///< true | false
  kInteger,        ///< whole number without a unit
  kText,           ///< free text
  kChoice,         ///< one of `Parameter::choices`
  kDuration,       ///< "50ms"
  kSize,           ///< "4MiB"
  kRate,           ///< "400Mbit"
  kPercent,        ///< "50%"
  kRateOrPercent,  ///< "400Mbit" or "25%" (of what, the documentation says)
};

/// Sizes and rates are int64_t, as `Bytes` and `BitsPerSecond` are; the parameter's type tells.
using ParameterValue = std::variant<bool, std::int64_t, std::string, Duration, Fraction>;

/// One row of a table of parameters: the single source for the reader that checks a value, for the
/// JSON Schema and for the documentation, so that they cannot drift apart.
struct Parameter {
  std::string_view name;
  ParameterType type = ParameterType::kText;
  /// Value when it is not given, as a user would write it. Empty: no default.
  std::string_view fallback = {};
  /// Must be given. A parameter that is not required and has no default is simply absent.
  bool required = false;
  std::string_view minimum = {};  ///< smallest value allowed, as a user would write it
  std::string_view maximum = {};  ///< largest value allowed, likewise
  std::vector<std::string_view> choices = {};
  std::string_view doc = {};  ///< one sentence, for people
};

/// The type in words: "duration", "whole number".
std::string_view typeName(ParameterType type);

/// Reads `text` as a value of `parameter` and checks its range; the message says what is expected.
Result<ParameterValue> parseParameter(const Parameter& parameter, std::string_view text);

/// The spelling that `parseParameter` reads back.
std::string formatParameter(ParameterType type, const ParameterValue& value);

/// "duration, default 600ms, 1ms to 1h": the row without its name and documentation.
std::string describeParameter(const Parameter& parameter);

/// Values by name, of the types that a table declares. The getters are for names that the table
/// holds with that type: asking for another one is a bug of the caller and throws std::logic_error.
class Parameters {
 public:
  void set(std::string name, ParameterValue value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }

  bool flag(std::string_view name) const { return get<bool>(name); }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  Duration duration(std::string_view name) const { return get<Duration>(name); }
  Bytes size(std::string_view name) const { return get<std::int64_t>(name); }
  BitsPerSecond rate(std::string_view name) const { return get<std::int64_t>(name); }
  double fraction(std::string_view name) const { return get<Fraction>(name).value; }
  const ParameterValue& value(std::string_view name) const;

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool operator==(const Parameters&) const = default;

 private:
  template <typename T>
  const T& get(std::string_view name) const {
    const T* value = std::get_if<T>(&this->value(name));
    if (value == nullptr) failType(name);
    return *value;
  }
  [[noreturn]] static void failType(std::string_view name);

  std::map<std::string, ParameterValue, std::less<>> values_;
};

}  // namespace faultline

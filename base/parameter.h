#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"

/// Typed values that users write: one row of a table says name, type, default, bounds and meaning,
/// and the scenario reader, its JSON Schema, `faultline describe` and the documentation are all
/// made from such tables, so that they cannot drift.
namespace faultline {

/// How a parameter is written in a scenario.
enum class ParameterType {
  kDuration,       ///< "50ms"
  kPercent,        ///< "50%"
  kRate,           ///< "400Mbit"
  kRateOrPercent,  ///< "40Mbit" or "10%"
  kInteger,        ///< "5"
  kEnum,           ///< one of `ParameterSpec::choices`
  kSize,           ///< "4MiB"
  kFlag,           ///< true | false
  kText,           ///< free text
  kCommand,        ///< a program and its arguments, as splitCommand() reads them
  kDecimal,        ///< "0.7": a number without a unit
  kName,           ///< letters, digits, '_', '-', '.', at most kLongestName: fit for a file name
};

/// A share of something, 100 = all of it.
struct Percent {
  double value = 0;
  bool operator==(const Percent&) const = default;
};

struct Rate {
  BitsPerSecond bitsPerSecond = 0;
  bool operator==(const Rate&) const = default;
};

struct Size {
  Bytes bytes = 0;
  bool operator==(const Size&) const = default;
};

/// Duration, Percent, Rate, integer, text or the chosen word of an enumeration, Size, flag, or
/// decimal.
using ParameterValue =
    std::variant<Duration, Percent, Rate, std::int64_t, std::string, Size, bool, double>;

/// One parameter of one fault, strategy, or part of a scenario.
struct ParameterSpec {
  std::string_view name;
  ParameterType type;
  std::string_view defaultText;  ///< as it would be written; empty: there is no default
  std::string_view meaning;      ///< one sentence for people
  std::span<const std::string_view> choices{};  ///< kEnum only
  /// Inclusive bounds in the parameter's own unit: seconds, percent, bits per second, bytes, or
  /// count; both 0: unbounded. For kRateOrPercent they bound the percentage; a rate must be at
  /// least kSlowestRate.
  double minimum = 0;
  double maximum = 0;

  bool required() const { return defaultText.empty(); }
  bool bounded() const { return minimum != 0 || maximum != 0; }
};

inline constexpr std::size_t kLongestName = 64;

/// The slowest rate a link can be given: below it one frame takes longer than a second.
inline constexpr BitsPerSecond kSlowestRate = 16'000;

/// The type's name for people and for the JSON Schema: "duration", "rate or percent", ...
std::string_view typeName(ParameterType type);

/// "duration", or the choices of an enumeration: "carrier | admin".
std::string typeOf(const ParameterSpec& spec);

/// A bound of `spec` as a user would write it: "2ms", "99%", "1000000".
std::string formatBound(const ParameterSpec& spec, double bound);

/// Reads one value; the error says what was expected, with an example and the bounds.
Result<ParameterValue> parseParameter(const ParameterSpec& spec, std::string_view text);

/// The spelling that parseParameter reads back.
std::string formatParameter(const ParameterValue& value);

/// Paragraphs of at most kTextColumns columns, one per parameter: type, default, range, meaning.
std::string describeParameters(std::span<const ParameterSpec> specs);

/// One labelled paragraph of such a page; its text begins in column `indent`.
std::string describeRow(std::string_view label, std::string_view text, std::size_t indent = 12);

/// The values of one owner (a fault, a strategy), complete: every row of its table has one.
class Parameters {
 public:
  /// Reads `texts` (name -> value as written) and fills in defaults. Unknown names, missing
  /// required ones and bad values are kInvalidArgument; `owner` is named in the message.
  static Result<Parameters> parse(std::string_view owner, std::span<const ParameterSpec> specs,
                                  const std::map<std::string, std::string>& texts);

  /// The value as T, which must be the type that the table gives to this name.
  template <typename T>
  const T& get(std::string_view name) const {
    return std::get<T>(values_.find(name)->second);
  }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void set(std::string name, ParameterValue value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  const ParameterValue& value(std::string_view name) const { return values_.find(name)->second; }
  const std::map<std::string, ParameterValue, std::less<>>& all() const { return values_; }
  bool operator==(const Parameters&) const = default;

 private:
  std::map<std::string, ParameterValue, std::less<>> values_;
};

}  // namespace faultline

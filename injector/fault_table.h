#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"

/// The one table of faults and their parameters. The scenario reader, its JSON Schema, `faultline
/// describe` and the documentation are all made from it, so that they cannot drift; the faults
/// themselves get their values only through it. No I/O and no netlink here.
///
/// What every fault has in common (`target`, `at` or `during`, `duration` or `until`) belongs to
/// the scenario, not to this table.
namespace faultline::injector {

/// How a parameter is written in a scenario.
enum class ParameterType {
  kDuration,       ///< "50ms"
  kPercent,        ///< "50%"
  kRate,           ///< "400Mbit"
  kRateOrPercent,  ///< "40Mbit" or "10%"
  kInteger,        ///< "5"
  kEnum,           ///< one of `ParameterSpec::choices`
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

/// Duration, Percent, Rate, integer, or the chosen word of an enumeration.
using ParameterValue = std::variant<Duration, Percent, Rate, std::int64_t, std::string>;

/// One parameter of one fault.
struct ParameterSpec {
  std::string_view name;
  ParameterType type;
  std::string_view defaultText;  ///< as it would be written; empty: the parameter is required
  std::string_view meaning;      ///< one sentence for people
  std::span<const std::string_view> choices{};  ///< kEnum only
  /// Inclusive bounds in the parameter's own unit: seconds, percent, bits per second, or count. For
  /// kRateOrPercent they bound the percentage; a rate must be at least kSlowestRate.
  double minimum = 0;
  double maximum = 0;

  bool required() const { return defaultText.empty(); }
};

/// One kind of fault.
struct FaultKind {
  std::string_view name;
  std::string_view summary;   ///< what it does, in one sentence
  std::string_view sees;      ///< what the job can notice of it
  std::string_view evidence;  ///< the independent observation that proves it
  std::string_view undo;      ///< how it is taken back, also when everything of ours is killed
  std::span<const ParameterSpec> parameters;
};

/// The slowest rate a link can be throttled to: below it one frame takes longer than a second.
inline constexpr BitsPerSecond kSlowestRate = 16'000;

/// All faults, in the order in which they are listed.
std::span<const FaultKind> faultKinds();

/// nullptr when there is none of that name.
const FaultKind* findFaultKind(std::string_view name);

/// nullptr when the fault has no such parameter.
const ParameterSpec* findParameter(const FaultKind& kind, std::string_view name);

/// The type's name for people and for the JSON Schema: "duration", "rate or percent", ...
std::string_view typeName(ParameterType type);

/// Reads one value; the error says what was expected, with an example and the bounds.
Result<ParameterValue> parseParameter(const ParameterSpec& spec, std::string_view text);

/// The spelling that parseParameter reads back.
std::string formatParameter(const ParameterValue& value);

/// The values of one fault, complete: every parameter of its kind has one.
class FaultParameters {
 public:
  /// Reads `texts` (name -> value as written) and fills in defaults. Unknown names, missing
  /// required ones and bad values are kInvalidArgument.
  static Result<FaultParameters> parse(const FaultKind& kind,
                                       const std::map<std::string, std::string>& texts);

  /// The value as T, which must be the type that the table gives to this name.
  template <typename T>
  const T& get(std::string_view name) const {
    return std::get<T>(values_.find(name)->second);
  }
  const ParameterValue& value(std::string_view name) const { return values_.find(name)->second; }
  const std::map<std::string, ParameterValue, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, ParameterValue, std::less<>> values_;
};

/// The page of `faultline describe <fault>`: plain text of at most 100 columns.
std::string describeFault(const FaultKind& kind);

}  // namespace faultline::injector

#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace faultline {

/// What a number of a table of fields may be; of a list, a map or an optional each number in it.
/// Moments and durations are nanoseconds.
struct NumberRange {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double least = -kInfinity;
  double most = kInfinity;
  /// It is an index of one of these. How many there are is not in the table: whoever knows checks.
  const char* indexOf = nullptr;

  std::string words() const {
    if (most == kInfinity) return fmt::format("at least {}", least);
    if (least == -kInfinity) return fmt::format("at most {}", most);
    return fmt::format("{} to {}", least, most);
  }
};

inline constexpr NumberRange kNotNegative{.least = 0};
inline constexpr NumberRange kPositive{.least = 1};
inline constexpr NumberRange kShare{.least = 0, .most = 1};

/// One `check` per kind of value, in a class so that all of them see each other. `path` names the
/// value in messages. kInvalidArgument, with the path, for a number that is not in the range.
class RangeCheck {
 public:
  template <typename T>
  static Status check(const T& value, const NumberRange& range, const std::string& path) {
    if constexpr (std::is_same_v<T, TimePoint>) {
      return check(value.time_since_epoch().count(), range, path);
    } else if constexpr (std::is_same_v<T, Duration>) {
      return check(value.count(), range, path);
    } else {
      static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "no number");
      const auto number = static_cast<double>(value);
      if (number >= range.least && number <= range.most) return okStatus();
      return errorf(Code::kInvalidArgument, "{}: expected {}, found {}", path, range.words(),
                    value);
    }
  }
  template <typename T>
  static Status check(const std::optional<T>& value, const NumberRange& range,
                      const std::string& path) {
    return value ? check(*value, range, path) : okStatus();
  }
  template <typename T>
  static Status check(const std::vector<T>& values, const NumberRange& range,
                      const std::string& path) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      RETURN_IF_ERROR(check(values[i], range, fmt::format("{}[{}]", path, i)));
    }
    return okStatus();
  }
  template <typename T>
  static Status check(const std::map<std::string, T>& values, const NumberRange& range,
                      const std::string& path) {
    for (const auto& [key, value] : values) {
      RETURN_IF_ERROR(check(value, range, fmt::format("{}.{}", path, key)));
    }
    return okStatus();
  }
};

}  // namespace faultline

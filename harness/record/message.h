#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"

namespace faultline::run {

/// A field of a rank's message; `otherwise` when it is absent or null.
template <typename T>
T field(const nlohmann::json& message, const char* key, T otherwise) {
  const auto found = message.find(key);
  return found == message.end() || found->is_null() ? otherwise : found->get<T>();
}

/// A moment in nanoseconds of the monotonic clock; the clock's epoch when absent.
inline TimePoint momentOf(const nlohmann::json& message, const char* key) {
  return TimePoint(Duration(field(message, key, std::int64_t{0})));
}

/// What a rank says of its own end.
inline std::string errorOf(const nlohmann::json& message) {
  return field(message, "message", std::string("an error without words"));
}

}  // namespace faultline::run

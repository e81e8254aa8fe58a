#pragma once

#include <span>
#include <string_view>

#include "base/parameter.h"
#include "harness/site/limits.h"

/// What the tables of the scenario language (language_table.h) are written with.
namespace faultline::scenario::rows {

using Type = ParameterType;

inline constexpr double kMostNodes = site::kMost.nodes;
inline constexpr double kMostRails = site::kMost.rails;
inline constexpr double kMostRanksPerNode = site::kMost.ranksPerNode;
inline constexpr double kMostRanks = kMostNodes * kMostRanksPerNode;
inline constexpr double kMostIterations = 1'000'000;
inline constexpr double kLargestGradient = 4.0 * (1LL << 30);
inline constexpr double kHour = 3600;
inline constexpr double kMillisecond = 0.001;

constexpr ParameterSpec number(std::string_view name, std::string_view fallback, double minimum,
                               double maximum, std::string_view meaning) {
  return {name, Type::kInteger, fallback, meaning, {}, minimum, maximum};
}
constexpr ParameterSpec duration(std::string_view name, std::string_view fallback, double minimum,
                                 std::string_view meaning) {
  return {name, Type::kDuration, fallback, meaning, {}, minimum, kHour};
}
constexpr ParameterSpec choice(std::string_view name, std::string_view fallback,
                               std::span<const std::string_view> choices,
                               std::string_view meaning) {
  return {name, Type::kEnum, fallback, meaning, choices};
}
constexpr ParameterSpec labelled(std::string_view name, std::string_view meaning) {
  return {name, Type::kText, "", meaning};
}

}  // namespace faultline::scenario::rows

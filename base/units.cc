#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <system_error>

namespace faultline {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t factor;
};

constexpr std::array<Unit, 6> kDurations{{{"ns", 1},
                                          {"us", 1'000},
                                          {"ms", 1'000'000},
                                          {"s", 1'000'000'000},
                                          {"min", 60'000'000'000},
                                          {"h", 3'600'000'000'000}}};
constexpr std::array<Unit, 7> kSizes{{{"B", 1},
                                      {"kB", 1'000},
                                      {"KiB", 1 << 10},
                                      {"MB", 1'000'000},
                                      {"MiB", 1 << 20},
                                      {"GB", 1'000'000'000},
                                      {"GiB", 1 << 30}}};
constexpr std::array<Unit, 4> kRates{
    {{"bit", 1}, {"kbit", 1'000}, {"Mbit", 1'000'000}, {"Gbit", 1'000'000'000}}};

std::string listOf(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) list += (list.empty() ? "" : ", ") + std::string(unit.suffix);
  return list;
}

Result<std::int64_t> parseWithUnit(std::string_view text, std::span<const Unit> units,
                                   std::string_view what, std::string_view example) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) {
    return errorf(Code::kInvalidArgument, "'{}' is not a {}: write a number with a unit, like {}",
                  text, what, example);
  }
  const std::string_view suffix = text.substr(end - text.data());
  if (suffix.empty()) {
    return errorf(Code::kInvalidArgument, "'{}' has no unit: a {} needs one of {}, like {}", text,
                  what, listOf(units), example);
  }
  for (const Unit& unit : units) {
    if (suffix != unit.suffix) continue;
    const double value = number * static_cast<double>(unit.factor);
    constexpr auto kLargest = static_cast<double>(std::numeric_limits<std::int64_t>::max()) / 2;
    if (!(value >= 0 && value <= kLargest)) {
      return errorf(Code::kInvalidArgument, "'{}' is out of range for a {}", text, what);
    }
    return static_cast<std::int64_t>(std::llround(value));
  }
  return errorf(Code::kInvalidArgument,
                "'{}' has the unknown unit '{}': a {} needs one of {}, like {}", text, suffix, what,
                listOf(units), example);
}

std::string formatWithUnit(std::int64_t value, std::span<const Unit> units) {
  // The largest unit that divides the value; among equals the later one in the table.
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  }
  return fmt::format("{}{}", value / best->factor, best->suffix);
}

}  // namespace

Result<Duration> parseDuration(std::string_view text) {
  ASSIGN_OR_RETURN(const std::int64_t value, parseWithUnit(text, kDurations, "duration", "50ms"));
  return Duration(value);
}

Result<Bytes> parseSize(std::string_view text) {
  return parseWithUnit(text, kSizes, "size", "4MiB");
}

Result<BitsPerSecond> parseRate(std::string_view text) {
  return parseWithUnit(text, kRates, "rate", "400Mbit");
}

std::string formatDuration(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  return formatWithUnit(duration.count(), kDurations);
}

std::string approximately(Duration duration) {
  const Duration size = duration < Duration::zero() ? -duration : duration;
  if (size >= 1s) return fmt::format("{:.3f} s", toSeconds(duration));
  if (size >= 1ms) return fmt::format("{:.3f} ms", toMilliseconds(duration));
  return fmt::format("{:.3f} us", toMilliseconds(duration) * 1000);
}

std::string formatSize(Bytes bytes) { return formatWithUnit(bytes, kSizes); }

std::string formatRate(BitsPerSecond rate) { return formatWithUnit(rate, kRates); }

}  // namespace faultline

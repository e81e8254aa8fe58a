#include "harness/command/extract.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>

namespace faultline::command {
namespace {

std::optional<double> numberFrom(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// "end.streams.0.bytes" -> "/end/streams/0/bytes", with the escapes of RFC 6901.
std::string pointerOf(std::string_view path) {
  std::string pointer = "/";
  for (const char c : path) {
    if (c == '.') {
      pointer += '/';
    } else if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

}  // namespace

Status checkRegex(const std::string& regex) {
  try {
    const std::regex compiled(regex);
    if (compiled.mark_count() == 1) return okStatus();
    return errorf(Code::kInvalidArgument,
                  "'{}' has {} groups; one is needed, around the number, as in 'busbw ([0-9.]+)'",
                  regex, compiled.mark_count());
  } catch (const std::regex_error& error) {
    return errorf(Code::kInvalidArgument, "'{}' is no regular expression: {}", regex, error.what());
  }
}

Result<std::vector<double>> numbersIn(std::string_view text, const std::string& regex) {
  try {
    const std::regex compiled(regex);
    std::vector<double> numbers;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, std::min(end, kLongestLine));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      using Iterator = std::regex_iterator<std::string_view::const_iterator>;
      for (Iterator match(line.begin(), line.end(), compiled), none; match != none; ++match) {
        const std::string found = (*match)[1].str();
        const std::optional<double> number = numberFrom(found);
        if (!number) {
          return errorf(Code::kInvalidArgument, "'{}' matches '{}', which is no number", regex,
                        found);
        }
        numbers.push_back(*number);
      }
    }
    return numbers;
  } catch (const std::regex_error& error) {
    return errorf(Code::kInvalidArgument, "'{}': {}", regex, error.what());
  }
}

Result<double> numberAt(std::string_view json, std::string_view path) {
  const auto document = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return errorf(Code::kInvalidArgument, "it is no JSON");
  try {
    const nlohmann::json& value = document.at(nlohmann::json::json_pointer(pointerOf(path)));
    if (value.is_number()) return value.get<double>();
    return errorf(Code::kInvalidArgument, "'{}' is no number", path);
  } catch (const nlohmann::json::exception&) {
    return errorf(Code::kNotFound, "it has no '{}'", path);
  }
}

std::optional<double> pick(Take take, std::span<const double> numbers) {
  if (numbers.empty()) return std::nullopt;
  const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  switch (take) {
    case Take::kLast:
      return numbers.back();
    case Take::kFirst:
      return numbers.front();
    case Take::kMax:
      return std::ranges::max(numbers);
    case Take::kMin:
      return std::ranges::min(numbers);
    case Take::kMean:
      return sum / static_cast<double>(numbers.size());
    case Take::kSum:
      return sum;
  }
  return std::nullopt;
}

Take takeFromName(std::string_view word) {
  const auto found = std::ranges::find(kTakeNames, word);
  return found == kTakeNames.end() ? Take::kLast : static_cast<Take>(found - kTakeNames.begin());
}

std::string_view nameOf(Take take) { return kTakeNames[static_cast<std::size_t>(take)]; }

}  // namespace faultline::command

#include "harness/command/extract.h"

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "harness/command/pattern.h"

namespace faultline::command {
namespace {

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
  constexpr std::size_t kShown = 60;
  const std::string shown = regex.size() > kShown ? regex.substr(0, kShown) + "..." : regex;
  Status status = patternEngine().check(regex);
  if (!status.ok()) {
    return errorf(status.code(), "'{}' is no regular expression: {}", shown, status.message());
  }
  const int groups = readPattern(regex)->groups;
  if (groups == 1) return okStatus();
  return errorf(Code::kInvalidArgument,
                "'{}' has {} groups; one is needed, around the number, as in 'busbw ([0-9.]+)'",
                shown, groups);
}

Result<std::vector<double>> numbersIn(std::string_view text, const std::string& regex) {
  return patternEngine().numbersIn(text, regex);
}

Result<double> numberAt(std::string_view json, std::string_view path) {
  ASSIGN_OR_RETURN(const nlohmann::json document, parseJson(json));
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

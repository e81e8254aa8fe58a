#include "base/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

#include "base/executable.h"
#include "base/text.h"

namespace faultline {
namespace {

Status outOfRange(const ParameterSpec& spec, std::string_view text) {
  if (spec.minimum == spec.maximum) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is out of range: only {} is possible",
                  spec.name, text, formatBound(spec, spec.minimum));
  }
  return errorf(Code::kInvalidArgument, "{}: '{}' is out of range: {} to {} is possible", spec.name,
                text, formatBound(spec, spec.minimum), formatBound(spec, spec.maximum));
}

bool inRange(const ParameterSpec& spec, double value) {
  return !spec.bounded() || (value >= spec.minimum && value <= spec.maximum);
}

Result<ParameterValue> parsePercent(const ParameterSpec& spec, std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || std::string_view(end, last - end) != "%") {
    return errorf(Code::kInvalidArgument,
                  "{}: '{}' is not a percentage: write a number with its sign, like 50%", spec.name,
                  text);
  }
  if (!std::isfinite(number) || !inRange(spec, number)) return outOfRange(spec, text);
  return ParameterValue(Percent{number});
}

Result<ParameterValue> parseRateParameter(const ParameterSpec& spec, std::string_view text) {
  const Result<BitsPerSecond> rate = parseRate(text);
  if (!rate.ok()) return rate.status().withContext(spec.name);
  if (*rate < kSlowestRate) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is too slow: {} is the slowest rate", spec.name,
                  text, formatRate(kSlowestRate));
  }
  if (spec.type == ParameterType::kRate && !inRange(spec, static_cast<double>(*rate))) {
    return outOfRange(spec, text);
  }
  return ParameterValue(Rate{*rate});
}

Result<ParameterValue> parseInteger(const ParameterSpec& spec, std::string_view text) {
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc::result_out_of_range) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is out of range", spec.name, text);
  }
  if (error != std::errc() || end != last) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is not a whole number", spec.name, text);
  }
  if (!inRange(spec, static_cast<double>(number))) return outOfRange(spec, text);
  return ParameterValue(number);
}

Result<ParameterValue> parseDecimal(const ParameterSpec& spec, std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last || !std::isfinite(number)) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is not a number, like 0.7", spec.name, text);
  }
  if (!inRange(spec, number)) return outOfRange(spec, text);
  return ParameterValue(number);
}

Result<ParameterValue> parseEnum(const ParameterSpec& spec, std::string_view text) {
  if (std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end()) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is not one of {}{}", spec.name, text,
                  join(spec.choices, ", "), didYouMean(text, spec.choices));
  }
  return ParameterValue(std::string(text));
}

Result<ParameterValue> parseDurationParameter(const ParameterSpec& spec, std::string_view text) {
  const Result<Duration> duration = parseDuration(text);
  if (!duration.ok()) return duration.status().withContext(spec.name);
  if (!inRange(spec, toSeconds(*duration))) return outOfRange(spec, text);
  return ParameterValue(*duration);
}

Result<ParameterValue> parseSizeParameter(const ParameterSpec& spec, std::string_view text) {
  const Result<Bytes> bytes = parseSize(text);
  if (!bytes.ok()) return bytes.status().withContext(spec.name);
  if (!inRange(spec, static_cast<double>(*bytes))) return outOfRange(spec, text);
  return ParameterValue(Size{*bytes});
}

Result<ParameterValue> parseFlag(const ParameterSpec& spec, std::string_view text) {
  if (text == "true") return ParameterValue(true);
  if (text == "false") return ParameterValue(false);
  return errorf(Code::kInvalidArgument, "{}: '{}' is neither true nor false", spec.name, text);
}

Result<ParameterValue> parseName(const ParameterSpec& spec, std::string_view text) {
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (text.empty() || text.size() > kLongestName || !std::all_of(text.begin(), text.end(), inner) ||
      text.front() == '.' || text.front() == '-') {
    return errorf(Code::kInvalidArgument,
                  "{}: '{}' is not a name: use up to {} letters, digits, '_', '-' and '.', and "
                  "begin with none of the last two",
                  spec.name, text.substr(0, kLongestName), kLongestName);
  }
  return ParameterValue(std::string(text));
}

Result<ParameterValue> parseCommand(const ParameterSpec& spec, std::string_view text) {
  const auto words = splitCommand(text);
  if (!words.ok()) return words.status().withContext(std::string(spec.name));
  return ParameterValue(std::string(text));
}

}  // namespace

std::string_view typeName(ParameterType type) {
  switch (type) {
    case ParameterType::kDuration:
      return "duration";
    case ParameterType::kPercent:
      return "percent";
    case ParameterType::kRate:
      return "rate";
    case ParameterType::kRateOrPercent:
      return "rate or percent";
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kEnum:
      return "enum";
    case ParameterType::kSize:
      return "size";
    case ParameterType::kFlag:
      return "true | false";
    case ParameterType::kText:
      return "text";
    case ParameterType::kCommand:
      return "command";
    case ParameterType::kDecimal:
      return "number";
    case ParameterType::kName:
      return "name";
  }
  return "unknown";
}

std::string typeOf(const ParameterSpec& spec) {
  return spec.type == ParameterType::kEnum ? join(spec.choices, " | ")
                                           : std::string(typeName(spec.type));
}

std::string formatBound(const ParameterSpec& spec, double bound) {
  switch (spec.type) {
    case ParameterType::kDuration:
      return formatDuration(Duration(std::llround(bound * 1e9)));
    case ParameterType::kPercent:
    case ParameterType::kRateOrPercent:
      return fmt::format("{}%", bound);
    case ParameterType::kRate:
      return formatRate(std::llround(bound));
    case ParameterType::kSize:
      return formatSize(std::llround(bound));
    case ParameterType::kDecimal:
      return fmt::format("{}", bound);
    default:
      return fmt::format("{:.0f}", bound);
  }
}

Result<ParameterValue> parseParameter(const ParameterSpec& spec, std::string_view text) {
  switch (spec.type) {
    case ParameterType::kDuration:
      return parseDurationParameter(spec, text);
    case ParameterType::kPercent:
      return parsePercent(spec, text);
    case ParameterType::kRate:
      return parseRateParameter(spec, text);
    case ParameterType::kRateOrPercent:
      return text.ends_with('%') ? parsePercent(spec, text) : parseRateParameter(spec, text);
    case ParameterType::kInteger:
      return parseInteger(spec, text);
    case ParameterType::kEnum:
      return parseEnum(spec, text);
    case ParameterType::kSize:
      return parseSizeParameter(spec, text);
    case ParameterType::kFlag:
      return parseFlag(spec, text);
    case ParameterType::kText:
      return ParameterValue(std::string(text));
    case ParameterType::kCommand:
      return parseCommand(spec, text);
    case ParameterType::kDecimal:
      return parseDecimal(spec, text);
    case ParameterType::kName:
      return parseName(spec, text);
  }
  return errorf(Code::kInternal, "{} has an unknown type", spec.name);
}

std::string formatParameter(const ParameterValue& value) {
  struct Visitor {
    std::string operator()(Duration duration) const { return formatDuration(duration); }
    std::string operator()(Percent percent) const { return fmt::format("{}%", percent.value); }
    std::string operator()(Rate rate) const { return formatRate(rate.bitsPerSecond); }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(const std::string& word) const { return word; }
    std::string operator()(Size size) const { return formatSize(size.bytes); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(double number) const { return fmt::format("{}", number); }
  };
  return std::visit(Visitor{}, value);
}

std::string describeRow(std::string_view label, std::string_view text, std::size_t indent) {
  std::string start = fmt::format("  {}", label);
  // A label that fills its column gets a line of its own.
  start += start.size() + 1 > indent ? "\n" + std::string(indent, ' ')
                                     : std::string(indent - start.size(), ' ');
  return start + wrapText(text, indent) + "\n";
}

std::string describeParameters(std::span<const ParameterSpec> specs) {
  if (specs.empty()) return "  none\n";
  std::string page;
  for (const ParameterSpec& spec : specs) {
    std::string facts = typeOf(spec);
    facts += spec.required() ? ", required" : fmt::format(", default {}", spec.defaultText);
    if (spec.bounded()) {
      facts += fmt::format(", {} to {}", formatBound(spec, spec.minimum),
                           formatBound(spec, spec.maximum));
    }
    page += describeRow(spec.name, facts) + describeRow("", spec.meaning);
  }
  return page;
}

Result<Parameters> Parameters::parse(std::string_view owner, std::span<const ParameterSpec> specs,
                                     const std::map<std::string, std::string>& texts) {
  std::vector<std::string_view> known;
  for (const ParameterSpec& spec : specs) known.push_back(spec.name);
  for (const auto& [name, text] : texts) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant = didYouMean(name, known);
    return errorf(Code::kInvalidArgument, "{} has no parameter '{}'{}", owner, name,
                  !meant.empty()  ? meant
                  : known.empty() ? "; it has none"
                                  : "; it has " + join(known, ", "));
  }
  Parameters parameters;
  for (const ParameterSpec& spec : specs) {
    const auto given = texts.find(std::string(spec.name));
    if (given == texts.end() && spec.required()) {
      return errorf(Code::kInvalidArgument, "{} needs the parameter '{}' ({})", owner, spec.name,
                    spec.meaning);
    }
    Result<ParameterValue> value =
        parseParameter(spec, given == texts.end() ? spec.defaultText : given->second);
    if (!value.ok()) return value.status().withContext(owner);
    parameters.values_.emplace(spec.name, *std::move(value));
  }
  return parameters;
}

}  // namespace faultline

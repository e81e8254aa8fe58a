#include "harness/scenario/expectation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/text_check.h"

namespace faultline::scenario {
namespace {

struct Operator {
  std::string_view sign;
  Comparison comparison;
};
// Two-character signs first: the first that fits is taken.
constexpr std::array<Operator, 6> kOperators{{{"==", Comparison::kEqual},
                                              {"!=", Comparison::kNotEqual},
                                              {"<=", Comparison::kLessEqual},
                                              {">=", Comparison::kGreaterEqual},
                                              {"<", Comparison::kLess},
                                              {">", Comparison::kGreater}}};

constexpr std::size_t kLongestText = 200;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool isWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::optional<double> parseNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

/// The right-hand side of a comparison with `metric`, in its canonical unit.
Result<MetricValue> parseExpected(const Metric& metric, std::string_view text) {
  const auto wrong = [&](std::string_view wanted) {
    return errorf(Code::kInvalidArgument, "'{}' cannot be compared with '{}': write {}",
                  metric.path, text, wanted);
  };
  const std::optional<double> number = parseNumber(text);
  switch (metric.type) {
    case MetricType::kCount:
      if (number) return MetricValue(*number);
      return wrong("a number");
    case MetricType::kPercent: {
      if (number) return MetricValue(*number);
      if (!text.empty() && text.back() == '%') {
        const auto percent = parseNumber(text.substr(0, text.size() - 1));
        if (percent) return MetricValue(*percent);
      }
      return wrong("a percentage, like 30 or 30%");
    }
    case MetricType::kMilliseconds:
      if (number) return MetricValue(*number);
      [[fallthrough]];
    case MetricType::kTime:
      if (const auto duration = parseDuration(text); duration.ok()) {
        return MetricValue(toMilliseconds(*duration));
      }
      return wrong(metric.type == MetricType::kTime ? "a duration with its unit, like 30s"
                                                    : "milliseconds, or a duration like 1.5s");
    case MetricType::kBytes:
      if (number) return MetricValue(*number);
      if (const auto bytes = parseSize(text); bytes.ok()) {
        return MetricValue(static_cast<double>(*bytes));
      }
      return wrong("bytes, or a size like 64KiB");
    case MetricType::kName:
      if (!metric.names.empty() &&
          std::find(metric.names.begin(), metric.names.end(), text) == metric.names.end()) {
        return wrong("one of " + join(metric.names, ", "));
      }
      if (!isWord(text)) return wrong("a name");
      return MetricValue(std::string(text));
    case MetricType::kFlag:
      if (text == "true") return MetricValue(true);
      if (text == "false") return MetricValue(false);
      return wrong("true or false");
  }
  return wrong("something else");
}

Status unknownMetric(std::string_view path, std::string_view strategy) {
  std::vector<std::string_view> known;
  for (const Metric& metric : metricTable()) {
    if (findMetric(metric.path, !strategy.empty()) == &metric) known.push_back(metric.path);
  }
  const std::string_view closest = closestWord(path, known);
  const std::string hint = closest.empty() ? "; 'faultline describe scenario' lists them"
                                           : fmt::format(" (did you mean '{}{}{}'?)", strategy,
                                                         strategy.empty() ? "" : ".", closest);
  if (strategy.empty()) {
    if (findMetric(path, true) != nullptr) {
      return errorf(Code::kInvalidArgument, "'{}' belongs to a strategy: write <strategy>.{}", path,
                    path);
    }
    return errorf(Code::kInvalidArgument, "there is no metric '{}'{}", path, hint);
  }
  return errorf(Code::kInvalidArgument, "{} has no metric '{}'{}", strategy, path, hint);
}

bool holds(const MetricValue& value, Comparison comparison, const MetricValue& expected) {
  if (value.index() != expected.index()) return comparison == Comparison::kNotEqual;
  switch (comparison) {
    case Comparison::kEqual:
      return value == expected;
    case Comparison::kNotEqual:
      return value != expected;
    case Comparison::kLess:
      return value < expected;
    case Comparison::kLessEqual:
      return value <= expected;
    case Comparison::kGreater:
      return value > expected;
    case Comparison::kGreaterEqual:
      return value >= expected;
  }
  return false;
}

std::string printed(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    // Whole numbers in full (a count of elements), others with the digits that mean something.
    constexpr double kExactIntegers = 0x1p53;
    const bool whole = std::trunc(*number) == *number && std::abs(*number) < kExactIntegers;
    return whole ? fmt::format("{:.0f}", *number) : fmt::format("{:.4g}", *number);
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return std::get<std::string>(value);
}

/// Which of two values that satisfy the comparison is closer to failing it.
bool closerToFailing(const MetricValue& a, const MetricValue& b, Comparison comparison) {
  if (comparison == Comparison::kLess || comparison == Comparison::kLessEqual) return a > b;
  if (comparison == Comparison::kGreater || comparison == Comparison::kGreaterEqual) return a < b;
  return false;
}

}  // namespace

Result<Expectation> parseExpectation(std::string_view text,
                                     std::span<const std::string> run_strategies) {
  if (text.size() > kLongestText) {
    return errorf(Code::kInvalidArgument, "an expectation has at most {} characters", kLongestText);
  }
  if (text.find_first_of("\n\r") != std::string_view::npos) {
    return errorf(Code::kInvalidArgument, "'{}' is no expectation: it goes over several lines",
                  shortened(text));
  }
  const std::size_t sign_at = text.find_first_of("=!<>");
  const Operator* found = nullptr;
  for (const Operator& candidate : kOperators) {
    if (sign_at == std::string_view::npos) break;
    if (found == nullptr && text.substr(sign_at).starts_with(candidate.sign)) found = &candidate;
  }
  if (found == nullptr) {
    return errorf(
        Code::kInvalidArgument,
        "'{}' is no expectation: write 'metric comparison value' with one of == != < <= > "
        ">=, like 'wrong_elements == 0'",
        shortened(text));
  }
  const std::string_view path = trimmed(text.substr(0, sign_at));
  const std::string_view value = trimmed(text.substr(sign_at + found->sign.size()));
  if (!isWord(path) || value.empty()) {
    return errorf(Code::kInvalidArgument,
                  "'{}' is no expectation: write 'metric comparison value', like "
                  "'wrong_elements == 0'",
                  shortened(text));
  }

  Expectation expectation{std::string(text), "", std::string(path), found->comparison, {}};
  const std::string_view owner = path.substr(0, path.find('.'));
  if (baseline::findStrategy(owner) != nullptr ||
      std::find(run_strategies.begin(), run_strategies.end(), owner) != run_strategies.end()) {
    expectation.strategy = owner;
    expectation.metric = path.substr(std::min(owner.size() + 1, path.size()));
  } else if (findMetric(path, false) == nullptr) {
    // Not global: perhaps a metric of a strategy that does not exist.
    const std::string_view rest = path.substr(std::min(owner.size() + 1, path.size()));
    if (findMetric(rest, true) != nullptr) {
      const std::vector<std::string_view> names(run_strategies.begin(), run_strategies.end());
      return errorf(Code::kInvalidArgument, "there is no strategy '{}'{}", owner,
                    suggestion(owner, names));
    }
  }
  const Metric* metric = findMetric(expectation.metric, !expectation.strategy.empty());
  if (metric == nullptr) return unknownMetric(expectation.metric, expectation.strategy);
  const auto runs = [&](std::string_view strategy) {
    return std::find(run_strategies.begin(), run_strategies.end(), strategy) !=
           run_strategies.end();
  };
  if (!expectation.strategy.empty() && !runs(expectation.strategy)) {
    return errorf(Code::kInvalidArgument,
                  "the scenario does not run {}: add it to 'strategies', or remove the expectation",
                  expectation.strategy);
  }
  if (metric->needsFaultFree && !runs(baseline::kFaultFree)) {
    return errorf(Code::kInvalidArgument,
                  "'{}' is measured against {}: add it to 'strategies', or remove the expectation",
                  path, baseline::kFaultFree);
  }
  if ((metric->type == MetricType::kName || metric->type == MetricType::kFlag) &&
      found->comparison != Comparison::kEqual && found->comparison != Comparison::kNotEqual) {
    return errorf(Code::kInvalidArgument, "'{}' has no order: compare it with == or !=", path);
  }
  ASSIGN_OR_RETURN(expectation.expected, parseExpected(*metric, value));
  return expectation;
}

Verdict evaluate(const Expectation& expectation, const MetricLookup& lookup) {
  const std::vector<MetricValue> values = lookup(expectation.strategy, expectation.metric);
  if (values.empty()) return {false, "none"};
  const MetricValue* deciding = nullptr;
  for (const MetricValue& value : values) {
    if (!holds(value, expectation.comparison, expectation.expected)) return {false, printed(value)};
    if (deciding == nullptr || closerToFailing(value, *deciding, expectation.comparison)) {
      deciding = &value;
    }
  }
  return {true, printed(*deciding)};
}

}  // namespace faultline::scenario

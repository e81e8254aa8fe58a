#include <algorithm>
#include <cmath>
#include <optional>

#include "harness/scenario/expectation.h"

namespace faultline::scenario {
namespace {

/// A number is an interval without length.
std::optional<ValueRange> rangeOf(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return ValueRange{*number, *number};
  if (const auto* range = std::get_if<ValueRange>(&value)) return *range;
  return std::nullopt;
}

/// Whether all of `a` is so to all of `b`; never with something that is not a number.
bool rangesHold(const ValueRange& a, Comparison comparison, const ValueRange& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return a == b && a.lo == a.hi;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
      return a.hi < b.lo;
    case Comparison::kLessEqual:
      return a.hi <= b.lo;
    case Comparison::kGreater:
      return a.lo > b.hi;
    case Comparison::kGreaterEqual:
      return a.lo >= b.hi;
  }
  return false;
}

bool holds(const MetricValue& value, Comparison comparison, const MetricValue& expected) {
  const auto range = rangeOf(value), wanted = rangeOf(expected);
  if (range && wanted) return rangesHold(*range, comparison, *wanted);
  const bool equal = value == expected;  // names, flags; never when the types differ
  return comparison == (equal ? Comparison::kEqual : Comparison::kNotEqual);
}

/// Whole numbers in full (a count of elements), others with the digits that mean something.
std::string printed(double number) {
  constexpr double kExactIntegers = 0x1p53;
  const bool whole = std::trunc(number) == number && std::abs(number) < kExactIntegers;
  return whole ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

std::string printed(const ValueRange& range) {
  if (range.lo == range.hi) return printed(range.lo);
  return fmt::format("[{}, {}]", printed(range.lo), printed(range.hi));
}

std::string printed(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return printed(*number);
  if (const auto* range = std::get_if<ValueRange>(&value)) return printed(*range);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return std::get<std::string>(value);
}

/// Which of two values that satisfy the comparison is closer to failing it.
bool closerToFailing(const MetricValue& a, const MetricValue& b, Comparison comparison) {
  const auto left = rangeOf(a), right = rangeOf(b);
  if (!left || !right) return false;
  if (comparison == Comparison::kLess || comparison == Comparison::kLessEqual) {
    return left->hi > right->hi;
  }
  if (comparison == Comparison::kGreater || comparison == Comparison::kGreaterEqual) {
    return left->lo < right->lo;
  }
  return false;
}

/// From the least of the values to the greatest: what is so to all of this is so to each of them.
std::optional<ValueRange> hullOf(const std::vector<MetricValue>& values) {
  std::optional<ValueRange> hull;
  for (const MetricValue& value : values) {
    const auto range = rangeOf(value);
    if (!range || std::isnan(range->lo) || std::isnan(range->hi)) return std::nullopt;
    if (!hull) hull = *range;
    hull = ValueRange{std::min(hull->lo, range->lo), std::max(hull->hi, range->hi)};
  }
  return hull;
}

std::string textOf(const MetricName& name) {
  return name.strategy.empty() ? name.metric : name.strategy + "." + name.metric;
}

Verdict evaluateChain(const Expectation& expectation, const MetricLookup& lookup) {
  const std::vector<MetricName> metrics = expectation.metrics();
  const std::string_view sign = signOf(expectation.comparison);
  Verdict verdict{.pass = true, .value = "", .why = ""};
  std::optional<ValueRange> before;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const auto range = hullOf(lookup(metrics[i].strategy, metrics[i].metric));
    if (!range) return {false, "none", ""};
    verdict.value += (i == 0 ? "" : "; ") + printed(*range);
    if (before && verdict.pass && !rangesHold(*before, expectation.comparison, *range)) {
      verdict.pass = false;
      verdict.why =
          fmt::format("{} is not {} {}.", textOf(metrics[i - 1]), sign, textOf(metrics[i]));
    }
    before = range;
  }
  return verdict;
}

}  // namespace

Verdict evaluate(const Expectation& expectation, const MetricLookup& lookup) {
  if (!expectation.others.empty()) return evaluateChain(expectation, lookup);
  const std::vector<MetricValue> values = lookup(expectation.strategy, expectation.metric);
  if (values.empty()) return {false, "none", ""};
  const MetricValue* deciding = nullptr;
  for (const MetricValue& value : values) {
    if (!holds(value, expectation.comparison, expectation.expected)) {
      return {false, printed(value), ""};
    }
    if (deciding == nullptr || closerToFailing(value, *deciding, expectation.comparison)) {
      deciding = &value;
    }
  }
  return {true, printed(*deciding), ""};
}

}  // namespace faultline::scenario

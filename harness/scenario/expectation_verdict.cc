#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "harness/scenario/expectation.h"

namespace faultline::scenario {
namespace {

using Outcome = Verdict::Outcome;

/// The least and the greatest of some numbers, each as far as it is known: it is one of these.
struct Extremes {
  ValueRange least;
  ValueRange greatest;
};

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// An interval has both its ends.
std::optional<Extremes> extremesOf(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    return Extremes{{*number, *number}, {*number, *number}};
  }
  if (const auto* range = std::get_if<ValueRange>(&value)) {
    return Extremes{{range->lo, range->lo}, {range->hi, range->hi}};
  }
  if (const auto* some = std::get_if<AtLeast>(&value)) {
    return Extremes{{some->value, kUnlimited}, {some->value, kUnlimited}};
  }
  return std::nullopt;
}

Outcome outcomeOf(bool holds, bool fails) {
  if (holds) return Outcome::kHolds;
  return fails ? Outcome::kFails : Outcome::kUnknown;
}

/// Whether all of `a` is so to all of `b`; never with something that is not a number.
Outcome compared(const Extremes& a, Comparison comparison, const Extremes& b) {
  const bool numbers = !std::isnan(a.least.lo) && !std::isnan(a.greatest.hi) &&
                       !std::isnan(b.least.lo) && !std::isnan(b.greatest.hi);
  if (!numbers) return Outcome::kFails;
  const bool apart = a.greatest.hi < b.least.lo || b.greatest.hi < a.least.lo;
  const bool known = a.least.lo == a.greatest.hi && b.least.lo == b.greatest.hi;
  const bool same = known && a.least.lo == b.least.lo;
  // Intervals that have ends differ as soon as one end does.
  const bool differ = apart || (a.greatest.hi < kUnlimited && b.greatest.hi < kUnlimited && !same);
  switch (comparison) {
    case Comparison::kEqual:
      return outcomeOf(same, differ);
    case Comparison::kNotEqual:
      return outcomeOf(differ, same);
    case Comparison::kLess:
      return outcomeOf(a.greatest.hi < b.least.lo, a.greatest.lo >= b.least.hi);
    case Comparison::kLessEqual:
      return outcomeOf(a.greatest.hi <= b.least.lo, a.greatest.lo > b.least.hi);
    case Comparison::kGreater:
      return outcomeOf(a.least.lo > b.greatest.hi, a.least.hi <= b.greatest.lo);
    case Comparison::kGreaterEqual:
      return outcomeOf(a.least.lo >= b.greatest.hi, a.least.hi < b.greatest.lo);
    case Comparison::kContains:
      break;
  }
  return Outcome::kFails;
}

Outcome compared(const MetricValue& value, Comparison comparison, const MetricValue& expected) {
  const auto numbers = extremesOf(value), wanted = extremesOf(expected);
  if (numbers && wanted) return compared(*numbers, comparison, *wanted);
  if (comparison == Comparison::kContains) {
    const auto *text = std::get_if<std::string>(&value),
               *part = std::get_if<std::string>(&expected);
    const bool contains =
        text != nullptr && part != nullptr && text->find(*part) != std::string::npos;
    return outcomeOf(contains, !contains);
  }
  const bool equal = value == expected;  // names, flags; never when the types differ
  const bool holds = comparison == (equal ? Comparison::kEqual : Comparison::kNotEqual);
  return outcomeOf(holds, !holds);
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

std::string printed(const AtLeast& some) { return fmt::format("at least {}", printed(some.value)); }

std::string printed(const Extremes& of) {
  const ValueRange known{of.least.lo, of.greatest.lo};
  return of.greatest.hi < kUnlimited ? printed(known) : printed(AtLeast{known.hi});
}

std::string printed(const MetricValue& value) {
  if (const auto* some = std::get_if<AtLeast>(&value)) return printed(*some);
  if (const auto* number = std::get_if<double>(&value)) return printed(*number);
  if (const auto* range = std::get_if<ValueRange>(&value)) return printed(*range);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return std::get<std::string>(value);
}

/// Which of two values that satisfy the comparison is closer to failing it.
bool closerToFailing(const MetricValue& a, const MetricValue& b, Comparison comparison) {
  const auto left = extremesOf(a), right = extremesOf(b);
  if (!left || !right) return false;
  if (comparison == Comparison::kLess || comparison == Comparison::kLessEqual) {
    return left->greatest.hi > right->greatest.hi;
  }
  if (comparison == Comparison::kGreater || comparison == Comparison::kGreaterEqual) {
    return left->least.lo < right->least.lo;
  }
  return false;
}

/// From the least of the values to the greatest: what is so to all of this is so to each of them.
std::optional<Extremes> hullOf(const std::vector<MetricValue>& values) {
  std::optional<Extremes> hull;
  for (const MetricValue& value : values) {
    const auto of = extremesOf(value);
    if (!of || std::isnan(of->least.lo) || std::isnan(of->greatest.hi)) return std::nullopt;
    if (!hull) hull = *of;
    hull =
        Extremes{{std::min(hull->least.lo, of->least.lo), std::min(hull->least.hi, of->least.hi)},
                 {std::max(hull->greatest.lo, of->greatest.lo),
                  std::max(hull->greatest.hi, of->greatest.hi)}};
  }
  return hull;
}

std::string textOf(const MetricName& name) {
  return name.strategy.empty() ? name.metric : name.strategy + "." + name.metric;
}

std::string notOver(const MetricName& name) {
  return fmt::format("{} is not known: what it is about had not ended when a run did.",
                     textOf(name));
}

Verdict evaluateChain(const Expectation& expectation, const MetricLookup& lookup) {
  const std::vector<MetricName> metrics = expectation.metrics();
  const std::string_view sign = signOf(expectation.comparison);
  Verdict verdict{.outcome = Outcome::kHolds, .value = "", .why = ""};
  std::optional<Extremes> before;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const auto range = hullOf(lookup(metrics[i].strategy, metrics[i].metric));
    if (!range) return {Outcome::kUnknown, "none", ""};
    verdict.value += (i == 0 ? "" : "; ") + printed(*range);
    const auto left = std::exchange(before, range);
    const Outcome outcome =
        left ? compared(*left, expectation.comparison, *range) : Outcome::kHolds;
    const bool decided = verdict.outcome == Outcome::kFails;
    if (outcome == Outcome::kHolds || decided) continue;
    if (outcome == Outcome::kUnknown && verdict.outcome == Outcome::kUnknown) continue;
    verdict.outcome = outcome;
    verdict.why =
        outcome == Outcome::kFails
            ? fmt::format("{} is not {} {}.", textOf(metrics[i - 1]), sign, textOf(metrics[i]))
            : notOver(metrics[std::isinf(left->greatest.hi) ? i - 1 : i]);
  }
  return verdict;
}

}  // namespace

Verdict evaluate(const Expectation& expectation, const MetricLookup& lookup) {
  if (!expectation.others.empty()) return evaluateChain(expectation, lookup);
  const std::vector<MetricValue> values = lookup(expectation.strategy, expectation.metric);
  if (values.empty()) return {Outcome::kUnknown, "none", ""};
  const MetricValue* deciding = nullptr;
  const MetricValue* unknown = nullptr;
  for (const MetricValue& value : values) {
    switch (compared(value, expectation.comparison, expectation.expected)) {
      case Outcome::kFails:
        return {Outcome::kFails, printed(value), ""};
      case Outcome::kUnknown:
        unknown = &value;
        break;
      case Outcome::kHolds:
        break;
    }
    if (deciding == nullptr || closerToFailing(value, *deciding, expectation.comparison)) {
      deciding = &value;
    }
  }
  if (unknown != nullptr) {
    return {Outcome::kUnknown, printed(*unknown),
            notOver({expectation.strategy, expectation.metric})};
  }
  return {Outcome::kHolds, printed(*deciding), ""};
}

}  // namespace faultline::scenario

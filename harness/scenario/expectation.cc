#include "harness/scenario/expectation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/document.h"

namespace faultline::scenario {
namespace {

struct Operator {
  std::string_view sign;
  Comparison comparison;
};
constexpr Operator kContains{"contains", Comparison::kContains};
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

/// "'rank 1'" and "\"rank 1\"" are rank 1.
std::string_view withoutQuotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
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
    case MetricType::kPercent:
    case MetricType::kInterval: {
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
        return wrong("one of " + join(metric.names, ", ") + didYouMean(text, metric.names));
      }
      if (!isWord(text)) return wrong("a name");
      return MetricValue(std::string(text));
    case MetricType::kText:
      return MetricValue(std::string(withoutQuotes(text)));
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
  const std::string hint = closest.empty() ? "; 'faultline list metrics' shows them"
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

bool hasOrder(const Metric& metric) {
  return metric.type != MetricType::kName && metric.type != MetricType::kText &&
         metric.type != MetricType::kFlag;
}

/// The right-hand side of 'contains'.
Result<MetricValue> parsePart(const Metric& metric, std::string_view text) {
  if (metric.type != MetricType::kName && metric.type != MetricType::kText) {
    return errorf(Code::kInvalidArgument, "'{}' is no text: compare it with {}, not with contains",
                  metric.path, hasOrder(metric) ? "== != < <= > or >=" : "== or !=");
  }
  const std::string_view part = withoutQuotes(text);
  if (part.empty()) {
    return errorf(Code::kInvalidArgument, "'{}' contains an empty text always: write which text",
                  metric.path);
  }
  const bool possible = metric.names.empty() || std::ranges::any_of(metric.names, [&](auto name) {
                          return name.find(part) != std::string_view::npos;
                        });
  if (!possible) {
    return errorf(Code::kInvalidArgument, "'{}' can never contain '{}': it is one of {}",
                  metric.path, part, join(metric.names, ", "));
  }
  return MetricValue(std::string(part));
}

/// Where " contains " stands, as a word of its own, before any sign; npos: nowhere.
std::size_t findContains(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t at = text.find(kContains.sign);
  if (at == std::string_view::npos || at == 0 || at > text.find_first_of("=!<>")) {
    return std::string_view::npos;
  }
  const std::string_view rest = text.substr(at + kContains.sign.size());
  const bool word = kBlanks.find(text[at - 1]) != std::string_view::npos &&
                    (rest.empty() || kBlanks.find(rest.front()) != std::string_view::npos);
  return word ? at : std::string_view::npos;
}

/// Reads "hot_repair.failovers.count" or "duration".
Result<MetricName> parseMetric(std::string_view path, std::span<const std::string> run_strategies) {
  const auto runs = [&](std::string_view strategy) {
    return std::find(run_strategies.begin(), run_strategies.end(), strategy) !=
           run_strategies.end();
  };
  MetricName name{"", std::string(path)};
  const std::string_view owner = path.substr(0, path.find('.'));
  const std::string_view rest = path.substr(std::min(owner.size() + 1, path.size()));
  if (baseline::findStrategy(owner) != nullptr || runs(owner)) {
    name = {std::string(owner), std::string(rest)};
  } else if (findMetric(path, false) == nullptr && findMetric(rest, true) != nullptr) {
    // Not global: a metric of a strategy that does not exist.
    const std::vector<std::string_view> names(run_strategies.begin(), run_strategies.end());
    return errorf(Code::kInvalidArgument, "there is no strategy '{}'{}", owner,
                  suggestion(owner, names));
  }
  const Metric* const metric = findMetric(name.metric, !name.strategy.empty());
  if (metric == nullptr) return unknownMetric(name.metric, name.strategy);
  if (!name.strategy.empty() && !runs(name.strategy)) {
    return errorf(Code::kInvalidArgument,
                  "the scenario does not run {}: add it to 'strategies', or remove the expectation",
                  name.strategy);
  }
  if (metric->needsFaultFree && !runs(baseline::kReferenceRow)) {
    return errorf(Code::kInvalidArgument,
                  "'{}' is measured against {}: add it to 'strategies', or remove the expectation",
                  path, baseline::kReferenceRow);
  }
  return name;
}

/// Whether the right-hand side of a comparison of numbers is a metric: "30" and "1.5s" are not,
/// "balance.overhead_pct.median > ..." is.
bool isMetric(std::string_view value) {
  const char first = value.front();
  if ((first < 'a' || first > 'z') && (first < 'A' || first > 'Z')) return false;
  const std::string_view word = trimmed(value.substr(0, value.find_first_of("=!<>")));
  return isWord(word) &&
         (word.find('.') != std::string_view::npos || findMetric(word, false) != nullptr);
}

/// Numbers of the same unit can be compared with each other.
MetricType unitOf(const Metric& metric) {
  if (metric.type == MetricType::kInterval) return MetricType::kPercent;
  if (metric.type == MetricType::kTime) return MetricType::kMilliseconds;
  return metric.type;
}

/// Reads "b > c" of "a > b > c".
Result<std::vector<MetricName>> parseOthers(const MetricName& first, const Operator& comparison,
                                            std::string_view text,
                                            std::span<const std::string> run_strategies) {
  if (comparison.comparison == Comparison::kNotEqual) {
    return errorf(Code::kInvalidArgument, "two metrics are compared with == < <= > or >=, not !=");
  }
  std::vector<MetricName> others;
  MetricName left = first;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find_first_of("=!<>");
    const std::string_view path = trimmed(rest.substr(0, end));
    if (!isWord(path)) {
      return errorf(Code::kInvalidArgument, "'{}' is no metric: write 'metric {} metric'",
                    shortened(path), comparison.sign);
    }
    ASSIGN_OR_RETURN(MetricName right, parseMetric(path, run_strategies));
    const Metric& a = *findMetric(left.metric, !left.strategy.empty());
    const Metric& b = *findMetric(right.metric, !right.strategy.empty());
    if (!hasOrder(b) || unitOf(a) != unitOf(b)) {
      return errorf(Code::kInvalidArgument, "'{}' cannot be compared with '{}': not the same unit",
                    a.path, b.path);
    }
    if (b.type == MetricType::kInterval && comparison.comparison == Comparison::kEqual) {
      return errorf(Code::kInvalidArgument,
                    "'{}' is an interval: compare it with < <= > or >=", path);
    }
    if (right == first || std::ranges::count(others, right) > 0) {
      return errorf(Code::kInvalidArgument, "'{}' is there twice: it is compared with itself",
                    path);
    }
    left = right;
    others.push_back(std::move(right));
    if (end == std::string_view::npos) return others;
    rest.remove_prefix(end);
    const bool same = rest.starts_with(comparison.sign) &&
                      rest.substr(comparison.sign.size()).find_first_of("=!<>") != 0;
    if (!same) {
      return errorf(Code::kInvalidArgument,
                    "'{}' is no expectation: several metrics are compared with the same sign, here "
                    "{}",
                    shortened(rest), comparison.sign);
    }
    rest.remove_prefix(comparison.sign.size());
  }
}

}  // namespace

std::vector<MetricName> Expectation::metrics() const {
  std::vector<MetricName> all{{strategy, metric}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::string_view signOf(Comparison comparison) {
  if (comparison == kContains.comparison) return kContains.sign;
  return std::ranges::find(kOperators, comparison, &Operator::comparison)->sign;
}

Result<Expectation> parseExpectation(std::string_view text,
                                     std::span<const std::string> run_strategies) {
  if (text.size() > kLongestText) {
    return errorf(Code::kInvalidArgument, "an expectation has at most {} characters", kLongestText);
  }
  if (text.find_first_of("\n\r") != std::string_view::npos) {
    return errorf(Code::kInvalidArgument, "'{}' is no expectation: it goes over several lines",
                  shortened(text));
  }
  const std::size_t contains_at = findContains(text);
  const bool contains = contains_at != std::string_view::npos;
  const std::size_t sign_at = contains ? contains_at : text.find_first_of("=!<>");
  const Operator* found = contains ? &kContains : nullptr;
  for (const Operator& candidate : kOperators) {
    if (sign_at == std::string_view::npos) break;
    if (found == nullptr && text.substr(sign_at).starts_with(candidate.sign)) found = &candidate;
  }
  if (found == nullptr) {
    return errorf(
        Code::kInvalidArgument,
        "'{}' is no expectation: write 'metric comparison value' with one of == != < <= > "
        ">= contains, like 'wrong_elements == 0'",
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

  Expectation expectation;
  expectation.text = text;
  expectation.comparison = found->comparison;
  ASSIGN_OR_RETURN(const MetricName first, parseMetric(path, run_strategies));
  expectation.strategy = first.strategy;
  expectation.metric = first.metric;
  const Metric& metric = *findMetric(first.metric, !first.strategy.empty());
  if (contains) {
    ASSIGN_OR_RETURN(expectation.expected, parsePart(metric, value));
    return expectation;
  }
  const bool ordered =
      found->comparison != Comparison::kEqual && found->comparison != Comparison::kNotEqual;
  if (!hasOrder(metric) && ordered) {
    return errorf(Code::kInvalidArgument, "'{}' has no order: compare it with {}", path,
                  metric.type == MetricType::kFlag ? "== or !=" : "==, != or contains");
  }
  if (metric.type == MetricType::kInterval && !ordered) {
    return errorf(Code::kInvalidArgument,
                  "'{}' is an interval: compare it with < <= > or >=", path);
  }
  if (!hasOrder(metric) || !isMetric(value)) {
    ASSIGN_OR_RETURN(expectation.expected, parseExpected(metric, value));
    return expectation;
  }
  ASSIGN_OR_RETURN(expectation.others, parseOthers(first, *found, value, run_strategies));
  return expectation;
}

}  // namespace faultline::scenario

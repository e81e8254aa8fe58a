#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "harness/scenario/metric_table.h"

namespace faultline::scenario {

enum class Comparison {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kContains,  ///< of texts: somewhere in it
};

/// Both ends of a kInterval.
struct ValueRange {
  double lo = 0;
  double hi = 0;
  bool operator==(const ValueRange&) const = default;
};

/// A number of which only a lower limit is known: what it is about had not ended when its run did.
struct AtLeast {
  double value = 0;
  bool operator==(const AtLeast&) const = default;
};

using MetricValue = std::variant<double, std::string, bool, ValueRange, AtLeast>;

/// A metric, and whose it is.
struct MetricName {
  std::string strategy;  ///< empty: of the whole result
  std::string metric;    ///< path in the table
  bool operator==(const MetricName&) const = default;
};

/// "==", "<=", "contains", ...
std::string_view signOf(Comparison comparison);

/// "hot_repair.failovers.count >= 1", understood; or metrics that are compared with each other, as
/// in "hot_repair.overhead_pct.ci95 > balance.overhead_pct.ci95".
struct Expectation {
  std::string text;      ///< as written
  std::string strategy;  ///< empty: of the whole result
  std::string metric;    ///< path in the table
  Comparison comparison = Comparison::kEqual;
  /// Numbers in the metric's canonical unit: milliseconds (also for kTime), percent, bytes.
  MetricValue expected;
  /// Instead of `expected`: the first metric is compared with the first of these, that one with the
  /// second, and so on: a > b > c.
  std::vector<MetricName> others;

  /// All that it speaks of, the first one too.
  std::vector<MetricName> metrics() const;
  bool operator==(const Expectation&) const = default;
};

/// Reads one expectation. `strategies` are the names that the scenario runs; an unknown metric, a
/// strategy that is not run, and a comparison that makes no sense are errors.
Result<Expectation> parseExpectation(std::string_view text,
                                     std::span<const std::string> strategies);

/// Gives all values of a metric in canonical units: for kEveryRun and kEveryEvent one per run or
/// event (for strategies that meet faults: of the faulted runs), for kSummary one or, where the
/// statistics have none (a percentile of too few samples), none.
using MetricLookup =
    std::function<std::vector<MetricValue>(const std::string& strategy, const std::string& metric)>;

struct Verdict {
  enum class Outcome {
    kFails,
    kHolds,
    kUnknown,  ///< there is no value, or too little is known of one
  } outcome = Outcome::kUnknown;
  bool holds() const { return outcome == Outcome::kHolds; }
  /// The value that decides: the one that fails first, else one of which too little is known, else
  /// the one closest to failing; "none" when there was nothing to look at.
  std::string value;
  /// Of metrics that are compared with each other, which two do not hold; when nothing can be said,
  /// why not.
  std::string why;
};

/// Holds when there is at least one value and all of them satisfy the comparison: of two metrics,
/// all values of one with all values of the other. Where an interval is compared, all of it is.
/// Fails when one value does not satisfy it, whatever is not known of others.
Verdict evaluate(const Expectation& expectation, const MetricLookup& lookup);

}  // namespace faultline::scenario

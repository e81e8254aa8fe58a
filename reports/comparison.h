#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/claimed_folder.h"
#include "base/status.h"
#include "reports/result.h"

/// What changed between two sets of results, row by row: of `faultline compare`
/// (harness/analysis/compare_results.h fills it in), and of `faultline history trend`
/// (harness/history/trend.h).
namespace faultline::reports {

enum class Change : std::uint8_t {
  kBetter,
  kWorse,
  kNotDistinguishable,  ///< chance, or what equal runs differ by, explains it
  kTooFew,              ///< fewer values on a side than a comparison needs
  kTooFewNights,        ///< they differ, but by what nights differ nobody knows yet
  kVoid,                ///< a side was measured on a machine that was too noisy
  kMissingInBase,
  kMissingInNew,
};

/// "better", "not distinguishable", "missing in BASE", ...
const char* nameOf(Change change);

/// What NEW is beside BASE, all in all.
enum class Standing : std::uint8_t {
  kAsGood,
  kWorse,     ///< a regression, something that passed and fails now, or something that is gone
  kUnproven,  ///< no row could be judged, or something that passed is invalid now
};

struct Comparison {
  /// The values of one side: one per run, of all its results of the scenario.
  struct Side {
    int n = 0;
    std::optional<double> median{};  ///< null without values
    std::optional<Interval> ci95{};  ///< of the median; null below 6 values
  };
  /// One night of a metric's history.
  struct Night {
    std::string started_at;  ///< ISO 8601 in UTC
    std::string git;
    std::string verdict;
    Side side;
    bool compared = true;  ///< false: too old, of another machine, or void
  };
  /// One metric of one strategy of one scenario.
  struct Row {
    std::string scenario;
    std::string strategy;
    std::string metric;
    std::string unit;
    Side base;
    Side now;
    /// NEW against BASE: medians of percentages in points, all others in percent of BASE. null
    /// where a side has no value, or BASE is 0.
    std::optional<double> difference{};
    std::string difference_unit{};  ///< "%" or "points"
    std::optional<double> p{};      ///< Mann-Whitney, two-sided; null for what is counted
    Change change = Change::kNotDistinguishable;
    bool regression = false;  ///< worse, and by more than the tolerance
    std::string note{};       ///< what one must know about the row; empty: nothing
    /// The oldest first, the last of them is NEW; empty: two results without a history.
    std::vector<Night> nights{};
  };
  /// A setting that was not the same on both sides.
  struct Difference {
    std::string what;  ///< "environment.kernel", "scenario.workload.iterations"
    std::string base;  ///< its value as JSON; empty: not there
    std::string now;
  };
  struct Scenario {
    std::string name;
    std::vector<std::string> base_verdicts;  ///< of its results; empty: it has none
    std::vector<std::string> new_verdicts;
    std::vector<Difference> differences;
  };

  std::string title = "Comparison";
  std::string base;  ///< what the user called the two sides
  std::string now;
  double tolerance_pct = 0;
  double significance = 0;     ///< p below this is no chance
  int min_values = 0;          ///< per side
  bool allow_missing = false;  ///< what vanished is no change for the worse
  std::vector<Scenario> scenarios;
  std::vector<Row> rows;

  int count(Change change) const;
  int regressions() const;
  /// Rows that could be told better, worse or not distinguishable.
  int judged() const;
  /// What BASE has results of and NEW has none: scenarios by name, strategies of the others as
  /// "scenario: strategy". A metric alone that is missing (a pause where nothing failed over) is
  /// not.
  std::vector<std::string> vanished() const;
  /// Scenarios of which most results of BASE passed, and one of NEW failed or is an error.
  std::vector<std::string> failsNow() const;
  /// The same, with one of NEW that is invalid.
  std::vector<std::string> invalidNow() const;
  Standing standing() const;
  /// "2 regressions beyond 2 %, 1 better, 4 not distinguishable, 1 missing in BASE".
  std::string verdict() const;
};

/// For terminals of 100 columns.
std::string comparisonText(const Comparison& comparison);

/// Schema "faultline.comparison/1"; keys may be added.
Json comparisonJson(const Comparison& comparison);

/// One page that loads nothing, in the style of report.html.
std::string comparisonHtml(const Comparison& comparison);

/// Writes `name`.html, `name`.md and `name`.json into `directory`, which is created when missing.
/// Errors as ClaimedFiles::claim; with kReplaced files of an earlier version are replaced.
Status writeComparison(const Comparison& comparison, const std::string& directory,
                       const std::string& name = "compare", Earlier earlier = Earlier::kRefused);

}  // namespace faultline::reports

#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/analysis/compared_metrics.h"
#include "harness/stats/mann_whitney.h"
#include "reports/comparison.h"

namespace faultline::run {

struct CompareOptions {
  std::string base;  ///< what the user called the two sides
  std::string now;
  /// A significant change for the worse by more than this is a regression.
  double tolerance_pct = 0;
};

/// What `judge` is given of one side.
struct ComparedSide {
  std::vector<double> values;
  double median_band_pct = 0;          ///< of equal runs: what their median can show; 0: not known
  std::string void_because{};          ///< why no speed can be told; empty: it can
  int lost = 0;                        ///< as ComparedValues has it
  std::optional<double> watched_ms{};  ///< likewise
};

/// Number, median and interval of one side's values. Pure.
reports::Comparison::Side sideOf(const std::vector<double>& values);

/// The row of one metric: medians with their intervals, difference, p, and what follows. Better and
/// worse need stats::kMinValuesToCompare values on both sides, p < stats::kSignificance, and, of
/// speeds, a difference greater than what medians of equal runs differ by; more of what is counted
/// (mean per run) is worse in any case. A side is not better for runs that ended early and are
/// missing, nor for one that was watched for less time than the other side took: the row is void.
/// Names are left empty. Pure.
reports::Comparison::Row compareSides(const ComparedMetric& metric, const ComparedSide& base,
                                      const ComparedSide& now, double tolerance_pct);

/// Two sets of results: those of the same scenario name belong together, several on one side are
/// put together. A row for each metric that a strategy has on either side; and each setting
/// (environment and scenario) that was not the same in all of them. Pure.
reports::Comparison compare(std::span<const reports::ScenarioResult> base,
                            std::span<const reports::ScenarioResult> now,
                            const CompareOptions& options);

}  // namespace faultline::run

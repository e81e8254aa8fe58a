#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reports/comparison.h"

namespace faultline::history {

struct StoredMetric {
  std::string unit{};
  std::vector<double> values{};
};

/// What a history keeps of one result.
struct StoredResult {
  std::string scenario;
  std::string started_at;  ///< ISO 8601 in UTC: sorts as time does
  std::string git;
  std::string kernel;
  std::string cpu;
  int cores = 0;
  std::string verdict;
  double median_band_pct = 0;  ///< what equal runs differed by (equal_runs.h); 0: not known
  std::string void_because;
  /// By strategy and name of the metric (run/compared_metrics.h).
  std::map<std::pair<std::string, std::string>, StoredMetric> metrics;
};

struct TrendOptions {
  std::string name;  ///< of the history
  int nights = 14;   ///< how many results before the newest it is held against
  double tolerance_pct = 0;
};

/// Per scenario its newest result against the last `nights` before it on the same machine
/// (processor and cores); those of other machines and the older ones are drawn, but not compared
/// with. Judged as two results are (run::judge, all values of those nights against the newest's).
/// But nights differ by more than runs of one night, so that a change is only told when the newest
/// median is also outside of what the medians of at least three nights before let expect
/// (stats::nextValueInterval99); of fewer nights it is Change::kTooFewNights. A plain change (half
/// as much again, or 50 points), beyond all nights before, is told however many they are. More of
/// what is counted is worse in any case.
///
/// A scenario that the last night had no result of, and one of the last `nights` before it on that
/// machine had, has vanished (Comparison::vanished): a night ends where a scenario comes again.
/// `results`: the oldest first. Pure.
reports::Comparison trend(std::span<const StoredResult> results, const TrendOptions& options);

}  // namespace faultline::history

#pragma once

#include <span>
#include <string_view>

/// What expectations can look at.
namespace faultline::scenario {

/// What a metric's values are, hence what it may be compared with.
enum class MetricType {
  kCount,         ///< a plain number
  kMilliseconds,  ///< name ends in _ms: a bare number is milliseconds; "100ms" and "2s" also work
  kTime,          ///< needs a unit: "30s"
  kPercent,       ///< "30" or "30%"
  kBytes,         ///< "0" or "64KiB"
  kInterval,      ///< of percent, both ends: above another when no value is in both
  kName,          ///< a word, compared with ==, != and contains only
  kText,          ///< any words, likewise; may be in quotes
  kFlag,          ///< true | false, compared with == and != only
};

/// One row of the table of metrics.
struct Metric {
  std::string_view path;  ///< without the strategy, e.g. "failovers.count"
  MetricType type;
  /// How many values there are: one per run (or per event), all of which must satisfy the
  /// expectation, or one for the whole result.
  enum class Scope { kEveryRun, kEveryEvent, kSummary } scope;
  /// Where it exists: `<strategy>.<path>`, `<path>` alone, or both.
  enum class Owner { kStrategy, kGlobal, kBoth } owner;
  /// What must be in order for it to mean anything; otherwise an expectation of it is void.
  enum class Trust {
    kAlways,  ///< nothing: what was seen, was seen
    kFault,   ///< every fault of the runs was seen to happen
    kSpeed,   ///< that, and the speeds are believable (row not mis-measured, machine quiet)
  } trust;
  std::string_view doc;  ///< one sentence
  /// Meaningless unless the strategy fault_free is in the scenario.
  bool needsFaultFree = false;
  std::span<const std::string_view> names{};  ///< values of a kName; empty: any word
};

/// What a metric says of a strategy of which a run ended before it had done its work: it failed, or
/// hung and did not go on.
enum class WhenCutShort {
  kAsSeen,   ///< what was seen until then
  kAtLeast,  ///< that, and nobody knows how much more there would have been
  kVoid,     ///< nothing: it would be of the runs, or the work, that went well
};
WhenCutShort whenCutShort(const Metric& metric);

/// Paths that begin so are about the cells of a sweep.
inline constexpr std::string_view kCellMetrics = "cells.";
/// Likewise about plans.
inline constexpr std::string_view kPlanMetrics = "plans.";
/// Likewise about what programs that are not ours tell; the name of the number follows.
inline constexpr std::string_view kProgramMetrics = "metrics.";
/// Likewise about communicators that such programs made anew, with all of their ranks.
inline constexpr std::string_view kRebuildMetrics = "rebuilds.";
/// Likewise, with fewer; jobs of ours have that too.
inline constexpr std::string_view kShrinkMetrics = "shrinks.";
/// Their row in the table.
inline constexpr std::string_view kAnyProgramMetric = "metrics.<name>";

/// All metrics that expectations may use.
std::span<const Metric> metricTable();

/// Whether only a server has it.
bool isOfRequests(std::string_view path);

/// Whether it is known of programs that are not ours.
bool isKnownOfPrograms(const Metric& metric);

/// nullptr when there is none of that path for this owner (a strategy, or the whole result).
const Metric* findMetric(std::string_view path, bool of_strategy);

}  // namespace faultline::scenario

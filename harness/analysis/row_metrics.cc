#include <algorithm>
#include <array>
#include <limits>

#include "harness/analysis/cell_metrics.h"
#include "harness/analysis/metric_readers.h"

namespace faultline::run {
namespace {

using metric::maybe;
using metric::number;
using CollectiveRow = reports::CollectiveRow;
using Reader = MetricReader;
using Scope = MetricScope;
using Values = MetricReader::Values;

std::optional<reports::Percentiles> pausesOf(const Scope& scope) {
  return scope.row == nullptr ? std::nullopt : scope.row->failover_pause_ms;
}

Values pause(const Scope& scope, std::optional<double> reports::Percentiles::*which) {
  const auto pauses = pausesOf(scope);
  return pauses ? maybe((*pauses).*which) : Values{};
}

/// Of exposed communication.
std::optional<reports::Interval> exposedInterval(const Scope& scope) {
  const bool known = scope.row != nullptr && scope.row->exposed_overhead_pct;
  return known ? scope.row->exposed_overhead_pct->ci95 : std::nullopt;
}

Values range(const reports::Summary* row,
             std::optional<reports::Overhead> reports::Summary::*overhead) {
  if (row == nullptr || !(row->*overhead) || !(row->*overhead)->ci95) return {};
  const reports::Interval& interval = *(row->*overhead)->ci95;
  return {scenario::ValueRange{interval.lo, interval.hi}};
}

Values interval(const Scope& scope, double reports::Interval::*end) {
  if (scope.row == nullptr || !scope.row->overhead_pct || !scope.row->overhead_pct->ci95) return {};
  return {(*scope.row->overhead_pct->ci95).*end};
}

Values numbers(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// Whether a run that ended before it had done its work has nothing to say of the time after its
/// faults, so that the row is of those that went well.
bool leavesOutRuns(const Scope& scope) {
  return std::ranges::any_of(
      scope.runs, [](const reports::Run* run) { return cutShort(*run) && !run->after_fault; });
}

/// A run that ended for good takes longer than any bound. One that was not back takes longer than
/// it was watched, and nobody knows how much.
Values timeBack(const Scope& scope, std::optional<double> reports::BackSpread::*which,
                std::optional<double> reports::BackSpread::*at_least) {
  if (scope.row == nullptr || !scope.row->back_to_95_pct_ms || leavesOutRuns(scope)) return {};
  const reports::BackSpread& back = *scope.row->back_to_95_pct_ms;
  if (back.*which) return {*(back.*which)};
  if (back.*at_least) return {scenario::AtLeast{*(back.*at_least)}};
  return {std::numeric_limits<double>::infinity()};
}

Values percentAfter(const Scope& scope, double reports::AfterSpread::*which) {
  if (scope.row == nullptr || !scope.row->after_pct || leavesOutRuns(scope)) return {};
  return {(*scope.row->after_pct).*which};
}

constexpr std::array kRowMetrics{
    Reader{"throughput.median",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->throughput) return Values{};
             return Values{s.row->throughput->value};
           }},
    Reader{"overhead_pct.median",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->overhead_pct) return Values{};
             return Values{s.row->overhead_pct->median};
           }},
    Reader{"overhead_pct.ci95",
           [](const Scope& s) { return range(s.row, &reports::Summary::overhead_pct); }},
    Reader{"overhead_pct.ci95.lo",
           [](const Scope& s) { return interval(s, &reports::Interval::lo); }},
    Reader{"overhead_pct.ci95.hi",
           [](const Scope& s) { return interval(s, &reports::Interval::hi); }},
    Reader{"overhead_pct.at_most",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->overhead_pct) return Values{};
             return maybe(s.row->overhead_pct->at_most);
           }},
    Reader{"overhead_pct.distinguishable",
           [](const Scope& s) {
             const auto& overhead = s.row == nullptr ? std::nullopt : s.row->overhead_pct;
             if (!overhead || !overhead->distinguishable) return Values{};
             return Values{*overhead->distinguishable};
           }},
    Reader{"exposed_overhead_pct.median",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->exposed_overhead_pct) return Values{};
             return Values{s.row->exposed_overhead_pct->median};
           }},
    Reader{"exposed_overhead_pct.ci95",
           [](const Scope& s) { return range(s.row, &reports::Summary::exposed_overhead_pct); }},
    Reader{"exposed_overhead_pct.ci95.lo",
           [](const Scope& s) {
             const auto interval = exposedInterval(s);
             return interval ? Values{interval->lo} : Values{};
           }},
    Reader{"exposed_overhead_pct.ci95.hi",
           [](const Scope& s) {
             const auto interval = exposedInterval(s);
             return interval ? Values{interval->hi} : Values{};
           }},
    Reader{"exposed_overhead_pct.half_width",
           [](const Scope& s) {
             const auto interval = exposedInterval(s);
             return interval ? Values{(interval->hi - interval->lo) / 2} : Values{};
           }},
    Reader{"noise.band_pct",
           [](const Scope& s) {
             return s.result.noise ? Values{s.result.noise->band_pct} : Values{};
           }},
    Reader{"noise.median_band_pct",
           [](const Scope& s) {
             return s.result.noise ? Values{s.result.noise->median_band_pct} : Values{};
           }},
    Reader{"noise.drift_pct",
           [](const Scope& s) {
             return s.result.noise ? maybe(s.result.noise->drift_pct) : Values{};
           }},
    Reader{"failover_pause_ms.p50",
           [](const Scope& s) { return pause(s, &reports::Percentiles::p50); }},
    Reader{"failover_pause_ms.p95",
           [](const Scope& s) { return pause(s, &reports::Percentiles::p95); }},
    Reader{"failover_pause_ms.p99",
           [](const Scope& s) { return pause(s, &reports::Percentiles::p99); }},
    Reader{"failover_pause_ms.max",
           [](const Scope& s) { return pause(s, &reports::Percentiles::max); }},
    Reader{"failover_pause_ms.n",
           [](const Scope& s) {
             const auto pauses = pausesOf(s);
             return Values{number(pauses ? pauses->n : 0)};
           }},
    Reader{"after_pct.median",
           [](const Scope& s) { return percentAfter(s, &reports::AfterSpread::median); }},
    Reader{"after_pct.min",
           [](const Scope& s) { return percentAfter(s, &reports::AfterSpread::min); }},
    Reader{"back_to_95_pct_ms.median",
           [](const Scope& s) {
             return timeBack(s, &reports::BackSpread::median,
                             &reports::BackSpread::median_at_least);
           }},
    Reader{"back_to_95_pct_ms.max",
           [](const Scope& s) {
             return timeBack(s, &reports::BackSpread::max, &reports::BackSpread::max_at_least);
           }},
    Reader{"cells.time_over_best",
           [](const Scope& s) { return numbers(cellsOverBest(s, Cells::kAll)); }},
    Reader{"cells.large.time_over_best",
           [](const Scope& s) { return numbers(cellsOverBest(s, Cells::kLarge)); }},
    Reader{"cells.large.all_reduce.time_over_best",
           [](const Scope& s) { return numbers(cellsOverBest(s, Cells::kLargeAllReduce)); }},
    Reader{"cells.large.time_over_bound",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_bound));
           }},
    Reader{"cells.large.time_over_ideal",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_ideal));
           }},
    Reader{"cells.large.time_over_model",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_model));
           }},
    Reader{"cells.large.time_over_formula",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_formula));
           }},
    Reader{"cells.large.busbw_kept_pct",
           [](const Scope& s) { return numbers(cellsKept(s, Cells::kLarge)); }},
};

}  // namespace

std::span<const MetricReader> rowMetrics() { return kRowMetrics; }

}  // namespace faultline::run

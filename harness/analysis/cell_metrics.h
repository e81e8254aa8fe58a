#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "harness/analysis/metric_scope.h"
#include "harness/scenario/sweep.h"
#include "reports/result.h"

/// What expectations say about the cells of a sweep: one value for each operation, size, type,
/// operator and place, from medians over the runs.
namespace faultline::run {

using scenario::kLargeCell;

enum class Cells { kAll, kLarge, kLargeAllReduce };

/// A column of the rows of the scope's strategy (`time_over_bound`, ...); cells of few bytes for
/// their ports (`latency_only`) are left out. Empty when one of the others has no value. Pure.
std::vector<double> cellRatios(const MetricScope& scope, Cells which,
                               std::optional<double> reports::CollectiveRow::*column);

/// Times of the scope's strategy over those of the best other one that meets the same faults with
/// an algorithm that it did not choose itself. Empty when there is no such one for one of the
/// cells, or the ports had less for one than for the other. Pure.
std::vector<double> cellsOverBest(const MetricScope& scope, Cells which);

/// What is left of fault_free's busbw, in percent: its time over that of the scope's strategy, as
/// both move the same bytes. Of that row alone (reports::kReferenceRow), whatever other fault-free
/// rows there are. Empty when it has not run one of the cells. Pure.
std::vector<double> cellsKept(const MetricScope& scope, Cells which);

/// Which large cell kept more than its ports let through (CollectiveRow::least), in words; empty:
/// none did. No goodput is in it, so that what iperf3 says of a slow rail (within a percent or so)
/// has no say. Pure.
std::string cellKeptTooMuch(const MetricScope& scope);

/// Which cell, of those that a metric of cells speaks of, was faster than possible, in words;
/// empty: none was. Comparisons between strategies speak of those of the others, too. Pure.
std::string misMeasuredCell(const MetricScope& scope, bool othersToo);

}  // namespace faultline::run

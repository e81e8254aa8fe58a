#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/analysis/metric_scope.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

/// What the readers of metrics (run_metrics.cc, row_metrics.cc, server_metrics.cc) share.
namespace faultline::run {

/// The values of one metric of scenario/metric_table.h. Pure.
struct MetricReader {
  using Values = std::vector<scenario::MetricValue>;

  std::string_view path;
  Values (*read)(const MetricScope&);
};

/// Metrics that are values of runs, and of what happened in them.
std::span<const MetricReader> runMetrics();

/// Metrics of a row of the summary, of the noise, and of the combinations of a sweep.
std::span<const MetricReader> rowMetrics();

/// Metrics of a server and its requests.
std::span<const MetricReader> serverMetrics();

namespace metric {

template <typename Number>
scenario::MetricValue number(Number value) {
  return static_cast<double>(value);
}

inline MetricReader::Values maybe(const std::optional<double>& value) {
  return value ? MetricReader::Values{*value} : MetricReader::Values{};
}

template <typename PerRun>
MetricReader::Values everyRun(const MetricScope& scope, PerRun per_run) {
  MetricReader::Values values;
  for (const reports::Run* run : scope.runs) values.push_back(per_run(*run));
  return values;
}

}  // namespace metric
}  // namespace faultline::run

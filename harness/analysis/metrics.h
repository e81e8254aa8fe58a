#pragma once

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// Looks up every metric of scenario/metric_table.h in a result, whose `summary` is filled in, in
/// its scope (metric_scope.h). The result must outlive the lookup. Pure.
scenario::MetricLookup metricsOf(const reports::ScenarioResult& result);

}  // namespace faultline::run

#include "harness/run/metrics.h"

#include <string>

#include "harness/run/metric_readers.h"
#include "harness/run/metric_scope.h"
#include "harness/scenario/metric_table.h"

namespace faultline::run {
namespace {

using Values = MetricReader::Values;

/// What the programs of a command told under this name; nothing of runs in which they did not.
Values told(const MetricScope& scope, const std::string& name) {
  Values values;
  for (const reports::Run* run : scope.runs) {
    const auto found = run->metrics.find(name);
    if (found != run->metrics.end()) values.push_back(found->second.value);
  }
  return values;
}

}  // namespace

scenario::MetricLookup metricsOf(const reports::ScenarioResult& result) {
  return [&result](const std::string& strategy, const std::string& metric) {
    MetricScope scope = scopeOf(result, strategy);
    const scenario::Metric* const row = scenario::findMetric(metric, !strategy.empty());
    if (row != nullptr && row->trust == scenario::Metric::Trust::kSpeed) {
      std::erase_if(scope.runs, [](const reports::Run* run) { return !run->void_because.empty(); });
    }
    if (metric.starts_with(scenario::kProgramMetrics)) {
      return told(scope, metric.substr(scenario::kProgramMetrics.size()));
    }
    for (const auto readers : {runMetrics(), rowMetrics(), serverMetrics()}) {
      for (const MetricReader& reader : readers) {
        if (reader.path == metric) return reader.read(scope);
      }
    }
    return Values{};
  };
}

}  // namespace faultline::run

#include "harness/analysis/metrics.h"

#include <string>

#include "harness/analysis/metric_readers.h"
#include "harness/analysis/metric_scope.h"
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

using scenario::AtLeast;
using scenario::Metric;
using scenario::WhenCutShort;

void onlySoFar(Values& values) {
  for (scenario::MetricValue& value : values) {
    if (const auto* number = std::get_if<double>(&value)) value = AtLeast{*number};
  }
}

/// What is not known of runs that ended before they had done their work is not told as if it were.
Values known(const MetricReader& reader, const Metric& metric, const MetricScope& scope) {
  const WhenCutShort cut = whenCutShort(metric);
  if (cut == WhenCutShort::kAsSeen || firstCutShort(scope) == nullptr) return reader.read(scope);
  if (cut == WhenCutShort::kVoid) return {};
  Values values;
  if (metric.scope == Metric::Scope::kSummary) {
    values = reader.read(scope);
    onlySoFar(values);
    return values;
  }
  for (const reports::Run* run : scope.runs) {
    MetricScope one = scope;
    one.runs = {run};
    Values own = reader.read(one);
    if (cutShort(*run)) onlySoFar(own);
    values.insert(values.end(), own.begin(), own.end());
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
        if (reader.path != metric) continue;
        return row == nullptr ? reader.read(scope) : known(reader, *row, scope);
      }
    }
    return Values{};
  };
}

}  // namespace faultline::run

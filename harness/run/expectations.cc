#include "harness/run/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "harness/run/cell_metrics.h"
#include "harness/run/metric_scope.h"
#include "harness/run/metrics.h"
#include "harness/scenario/metric_table.h"

namespace faultline::run {
namespace {

/// What decided, as a number, a name or a flag again; an interval, or several numbers, as a text.
reports::Json valueOf(const scenario::Metric& metric, const std::string& text) {
  using Type = scenario::MetricType;
  if (metric.type == Type::kName || metric.type == Type::kText) return text;
  if (metric.type == scenario::MetricType::kFlag) return text == "true";
  double value = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end) return text;
  if (std::isinf(value)) return "never";  // a time after which nothing came
  if (!std::isfinite(value)) return nullptr;
  constexpr double kExactIntegers = 0x1p53;
  if (std::trunc(value) == value && std::abs(value) <= kExactIntegers) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

/// Why the metric means nothing in these runs; empty: it does.
std::string whyVoid(const MetricScope& scope, const scenario::Metric& metric) {
  using Trust = scenario::Metric::Trust;
  const reports::Run* const cut = firstCutShort(scope);
  if (cut != nullptr && whenCutShort(metric) == scenario::WhenCutShort::kVoid) {
    return fmt::format(
        "{}, block {}, ended before it had done its work: of what went well before nothing "
        "follows.",
        cut->strategy, cut->block + 1);
  }
  if (metric.trust == Trust::kAlways) return "";
  const auto unseen = std::ranges::find_if(
      scope.runs, [](const reports::Run* run) { return !evidenceIsComplete(*run); });
  if (unseen != scope.runs.end()) {
    return fmt::format("A fault of {}, block {} was not seen to happen.", (*unseen)->strategy,
                       (*unseen)->block + 1);
  }
  if (metric.trust == Trust::kFault) return "";
  if (scope.row != nullptr && scope.row->mis_measured) return scope.row->note + ".";
  if (metric.path.starts_with(scenario::kCellMetrics)) {
    const bool compared = metric.path.ends_with("time_over_best");
    const bool kept = metric.path.ends_with("busbw_kept_pct");
    std::string cell = kept ? cellKeptTooMuch(scope) : misMeasuredCell(scope, compared);
    if (!cell.empty()) return cell;
  }
  const std::string noise = reports::voidBecause(scope.result);
  return noise.empty() ? "" : noise + ".";
}

std::string whyNothing(const scenario::MetricName& name, const scenario::Metric& metric) {
  const std::string whose = name.strategy.empty() ? "the experiment" : name.strategy;
  switch (metric.scope) {
    case scenario::Metric::Scope::kEveryRun:
      return fmt::format("No run of {} has this value ({}).", whose, metric.doc);
    case scenario::Metric::Scope::kEveryEvent:
      return fmt::format("Nothing of the kind happened in the runs of {} ({}).", whose, metric.doc);
    case scenario::Metric::Scope::kSummary:
      break;
  }
  return fmt::format("The runs of {} are too few to say it, or nothing of the kind happened ({}).",
                     whose, metric.doc);
}

/// The first of its metrics of which nothing can be said, in words; empty: all have values.
std::string whyNoValue(const scenario::Expectation& expectation,
                       const scenario::MetricLookup& lookup) {
  for (const scenario::MetricName& name : expectation.metrics()) {
    const scenario::Metric* const metric =
        scenario::findMetric(name.metric, !name.strategy.empty());
    if (metric == nullptr) return "There is no such metric.";
    if (lookup(name.strategy, name.metric).empty()) return whyNothing(name, *metric);
  }
  return "";
}

/// Cells are compared with what a rail carries: without that there is nothing to judge, and nothing
/// that failed. Empty: that is not why the expectation has no value.
std::string whyNotMeasured(const scenario::Expectation& expectation,
                           const reports::ScenarioResult& result) {
  for (const scenario::MetricName& name : expectation.metrics()) {
    if (!name.metric.starts_with(scenario::kCellMetrics)) continue;
    for (const reports::Run* run : scopeOf(result, name.strategy).runs) {
      if (run->goodput_missing.empty()) continue;
      return fmt::format("{}, block {}: {}.", run->strategy, run->block + 1, run->goodput_missing);
    }
  }
  return "";
}

/// Why it is void; empty: it is not.
std::string whyVoid(const scenario::Expectation& expectation,
                    const reports::ScenarioResult& result) {
  for (const scenario::MetricName& name : expectation.metrics()) {
    const scenario::Metric& metric = *scenario::findMetric(name.metric, !name.strategy.empty());
    std::string why = whyVoid(scopeOf(result, name.strategy), metric);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace

std::vector<reports::Expectation> evaluateExpectations(const scenario::Scenario& scenario,
                                                       const reports::ScenarioResult& result) {
  using Outcome = scenario::Verdict::Outcome;
  const scenario::MetricLookup lookup = metricsOf(result);
  std::vector<reports::Expectation> judged;
  for (const scenario::Expectation& expectation : scenario.expect) {
    reports::Expectation& line = judged.emplace_back();
    line.text = expectation.text;
    const scenario::Verdict verdict = scenario::evaluate(expectation, lookup);
    const std::string missing = whyNoValue(expectation, lookup);
    if (missing.empty()) {
      line.value = valueOf(*scenario::findMetric(expectation.metric, !expectation.strategy.empty()),
                           verdict.value);
    }
    const std::string unmeasured = missing.empty() ? "" : whyNotMeasured(expectation, result);
    for (const std::string& why : {unmeasured, whyVoid(expectation, result), missing}) {
      if (line.message.empty()) line.message = why;
    }
    if (line.message.empty() && verdict.outcome == Outcome::kUnknown) line.message = verdict.why;
    line.is_void = !line.message.empty();
    line.pass = verdict.outcome == Outcome::kHolds && !line.is_void;
    if (!line.is_void) line.message = verdict.why;
  }
  return judged;
}

}  // namespace faultline::run

#include "harness/analysis/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "harness/analysis/after_fault.h"
#include "harness/analysis/cell_metrics.h"
#include "harness/analysis/metric_scope.h"
#include "harness/analysis/metrics.h"
#include "harness/analysis/speed_bound.h"
#include "harness/scenario/metric_table.h"
#include "harness/stats/quantile.h"

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

std::string cutShortWords(const reports::Run& run) {
  return fmt::format(
      "{}, block {}, ended before it had done its work: of what went well before nothing follows.",
      run.strategy, run.block + 1);
}

/// Why the metric means nothing in these runs; empty: it does.
std::string whyVoid(const MetricScope& scope, const scenario::Metric& metric) {
  using Trust = scenario::Metric::Trust;
  const reports::Run* const cut = firstCutShort(scope);
  if (cut != nullptr && whenCutShort(metric) == scenario::WhenCutShort::kVoid) {
    return cutShortWords(*cut);
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

/// What a row of the summary lacks where it has no such value; empty: more cannot be said.
std::string whatTheRowLacks(const MetricScope& scope, std::string_view metric) {
  const std::size_t runs = scope.runs.size();
  if (runs == 0) return "";
  if (metric.starts_with("failover_pause_ms.") || metric.starts_with("detection_ms.")) {
    std::size_t failovers = 0;
    for (const reports::Run* run : scope.runs) failovers += run->failovers.size();
    if (failovers == 0) return "nothing failed over in its runs";
    const std::size_t needed = metric.ends_with(".p99")   ? stats::kMinSamplesForP99
                               : metric.ends_with(".p95") ? stats::kMinSamplesForP95
                                                          : 0;
    if (failovers >= needed) return "";
    return fmt::format("there were {} failovers in {} runs, and {} are needed: raise 'repeat'",
                       failovers, runs, needed);
  }
  if (metric == "throughput.median" || metric.starts_with("overhead_pct.")) {
    const auto done = std::ranges::count_if(
        scope.runs, [](const reports::Run* run) { return comparable(*run) && run->throughput; });
    if (done == 0 && std::ranges::any_of(scope.runs, [](const reports::Run* run) {
          return comparable(*run) && !run->processes.empty();
        })) {
      return fmt::format(
          "none of {} runs has a speed: one of its programs had ended before another "
          "began",
          runs);
    }
    if (done == 0) return fmt::format("none of {} runs did its work in a block that counts", runs);
    if (metric.starts_with("overhead_pct.ci95") && done < std::ssize(scope.runs)) {
      return fmt::format("only {} of {} runs can be compared with fault_free", done, runs);
    }
  }
  return "";
}

std::string whyNothing(const MetricScope& scope, const scenario::MetricName& name,
                       const scenario::Metric& metric) {
  const std::string whose = name.strategy.empty() ? "the experiment" : name.strategy;
  if (metric.path.starts_with("iteration_ms.")) {
    if (const reports::Run* const cut = firstCutShort(scope)) return cutShortWords(*cut);
  }
  if (metric.path.starts_with("after_pct.") || metric.path.starts_with("back_to_95_pct_ms.")) {
    for (const reports::Run* run : scope.runs) {
      if (!run->after_fault) return whyNothingAfterFault(scope.result, *run);
    }
  }
  if (const std::string lacks = whatTheRowLacks(scope, metric.path); !lacks.empty()) {
    return fmt::format("{}: {}.", whose, lacks);
  }
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
                       const reports::ScenarioResult& result,
                       const scenario::MetricLookup& lookup) {
  for (const scenario::MetricName& name : expectation.metrics()) {
    const scenario::Metric* const metric =
        scenario::findMetric(name.metric, !name.strategy.empty());
    if (metric == nullptr) return "There is no such metric.";
    if (lookup(name.strategy, name.metric).empty()) {
      return whyNothing(scopeOf(result, name.strategy), name, *metric);
    }
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
    const std::string missing = whyNoValue(expectation, result, lookup);
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

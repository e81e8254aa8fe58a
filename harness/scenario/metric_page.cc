#include "harness/scenario/metric_page.h"

#include <fmt/format.h>

#include "base/parameter.h"
#include "base/text.h"

namespace faultline::scenario {
namespace {

std::string scopeWords(const Metric& metric) {
  switch (metric.scope) {
    case Metric::Scope::kEveryRun:
      return "one of each run; all of them must hold";
    case Metric::Scope::kEveryEvent:
      return "one of each event (failover, restart, ...); all of them must hold";
    case Metric::Scope::kSummary:
      return "one, over all runs";
  }
  return "";
}

std::string trustWords(const Metric& metric) {
  std::string words = metric.needsFaultFree ? "only with fault_free among the strategies; " : "";
  switch (metric.trust) {
    case Metric::Trust::kAlways:
      return words + "always: also on a busy machine";
    case Metric::Trust::kFault:
      return words + "where every fault of the runs was seen to happen; else it is void";
    case Metric::Trust::kSpeed:
      return words + "where every fault was seen and the machine was quiet; else it is void";
  }
  return words;
}

std::string_view exampleValue(const Metric& metric) {
  switch (metric.type) {
    case MetricType::kCount:
      return ">= 1";
    case MetricType::kMilliseconds:
      return "<= 100";
    case MetricType::kTime:
      return "< 30s";
    case MetricType::kPercent:
      return "<= 30";
    case MetricType::kBytes:
      return "<= 64KiB";
    case MetricType::kInterval:
      return "< 30";
    case MetricType::kText:
      return "contains timeout";
    case MetricType::kName:
    case MetricType::kFlag:
      break;
  }
  return "== true";
}

std::string example(const Metric& metric) {
  std::string path(metric.path);
  if (metric.path == kAnyProgramMetric) path = "metrics.busbw";
  const std::string owner = metric.owner == Metric::Owner::kGlobal ? "" : "hot_repair.";
  if (metric.type == MetricType::kName && !metric.names.empty()) {
    return fmt::format("{}{} == {}", owner, path, metric.names.front());
  }
  return fmt::format("{}{} {}", owner, path, exampleValue(metric));
}

}  // namespace

std::string valueWords(const Metric& metric) {
  switch (metric.type) {
    case MetricType::kCount:
      return "a number";
    case MetricType::kMilliseconds:
      return "milliseconds, or a duration like 1.5s";
    case MetricType::kTime:
      return "a duration with its unit, like 30s";
    case MetricType::kPercent:
      return "percent: 30 or 30%";
    case MetricType::kBytes:
      return "bytes, or a size like 64KiB";
    case MetricType::kInterval:
      return "an interval of percent; it is above or below another when no value is in both";
    case MetricType::kName:
      return metric.names.empty() ? std::string("a word, with == or !=")
                                  : "with == or != one of " + join(metric.names, ", ");
    case MetricType::kText:
      return "text, with 'contains' and a part of it";
    case MetricType::kFlag:
      return "true or false";
  }
  return "";
}

std::string ownerWords(const Metric& metric) {
  switch (metric.owner) {
    case Metric::Owner::kStrategy:
      return fmt::format("a strategy: <strategy>.{}", metric.path);
    case Metric::Owner::kGlobal:
      return fmt::format("the whole result: {}", metric.path);
    case Metric::Owner::kBoth:
      return fmt::format("a strategy or the whole result: <strategy>.{0}, or {0}", metric.path);
  }
  return "";
}

std::string describeMetric(const Metric& metric) {
  return fmt::format("metric {}\n", metric.path) + describeRow("  means", metric.doc) +
         describeRow("  value", valueWords(metric)) + describeRow("  of", ownerWords(metric)) +
         describeRow("  values", scopeWords(metric)) + describeRow("  counts", trustWords(metric)) +
         describeRow("  example", "expect: [" + example(metric) + "]");
}

}  // namespace faultline::scenario

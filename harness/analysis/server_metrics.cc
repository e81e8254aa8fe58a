#include <algorithm>
#include <array>

#include "base/units.h"
#include "harness/analysis/metric_readers.h"
#include "harness/baseline/strategy_table.h"

namespace faultline::run {
namespace {

using metric::everyRun;
using metric::maybe;
using metric::number;
using Reader = MetricReader;
using Run = reports::Run;
using Scope = MetricScope;
using Values = MetricReader::Values;

Values latency(const Scope& scope, reports::Percentiles reports::Latency::*of,
               std::optional<double> reports::Percentiles::*which) {
  if (scope.row == nullptr || !scope.row->latency) return {};
  return maybe(((*scope.row->latency).*of).*which);
}

Values latencyCount(const Scope& scope, reports::Percentiles reports::Latency::*of) {
  if (scope.row == nullptr || !scope.row->latency) return {};
  return {number(((*scope.row->latency).*of).n)};
}

using Cost = std::optional<reports::Overhead> reports::RateRow::*;
using CostOf = std::optional<double> (*)(const reports::Overhead&);
constexpr CostOf kMedianCost = [](const reports::Overhead& cost) {
  return std::optional(cost.median);
};
constexpr CostOf kUpperCost = [](const reports::Overhead& cost) {
  return cost.ci95 ? std::optional(cost.ci95->hi) : std::nullopt;
};
constexpr CostOf kMostCost = [](const reports::Overhead& cost) { return cost.at_most; };

/// Of the rates that fault_free keeps up with; nothing where one of them does not have it.
Values latencyOverheads(const Scope& scope, Cost of, CostOf which) {
  Values values;
  if (scope.row == nullptr) return values;
  const auto free =
      std::ranges::find(scope.result.summary, baseline::kReferenceRow, &reports::Summary::strategy);
  for (const reports::RateRow& rate : scope.row->rates) {
    if (free != scope.result.summary.end() && free->knee_qps == rate.qps) break;
    const auto value = rate.*of ? which(*(rate.*of)) : std::nullopt;
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

Values requestCounts(const Scope& scope, int reports::RateRow::*count) {
  return everyRun(scope, [=](const Run& run) {
    int sum = 0;
    for (const reports::RateRow& rate : run.rates) sum += rate.*count;
    return number(sum);
  });
}

double goodPercent(const Run& run) {
  int good = 0;
  for (const reports::RateRow& rate : run.rates) good += rate.finished;
  return run.requests.empty() ? 0
                              : kWholeInPercent * good / static_cast<double>(run.requests.size());
}

constexpr std::array kServerMetrics{
    Reader{"ttft_ms.p50",
           [](const Scope& s) {
             return latency(s, &reports::Latency::ttft_ms, &reports::Percentiles::p50);
           }},
    Reader{"ttft_ms.p95",
           [](const Scope& s) {
             return latency(s, &reports::Latency::ttft_ms, &reports::Percentiles::p95);
           }},
    Reader{"ttft_ms.p99",
           [](const Scope& s) {
             return latency(s, &reports::Latency::ttft_ms, &reports::Percentiles::p99);
           }},
    Reader{"ttft_ms.max",
           [](const Scope& s) {
             return latency(s, &reports::Latency::ttft_ms, &reports::Percentiles::max);
           }},
    Reader{"ttft_ms.n", [](const Scope& s) { return latencyCount(s, &reports::Latency::ttft_ms); }},
    Reader{"tpot_ms.p50",
           [](const Scope& s) {
             return latency(s, &reports::Latency::tpot_ms, &reports::Percentiles::p50);
           }},
    Reader{"tpot_ms.p95",
           [](const Scope& s) {
             return latency(s, &reports::Latency::tpot_ms, &reports::Percentiles::p95);
           }},
    Reader{"tpot_ms.p99",
           [](const Scope& s) {
             return latency(s, &reports::Latency::tpot_ms, &reports::Percentiles::p99);
           }},
    Reader{"tpot_ms.max",
           [](const Scope& s) {
             return latency(s, &reports::Latency::tpot_ms, &reports::Percentiles::max);
           }},
    Reader{"tpot_ms.n", [](const Scope& s) { return latencyCount(s, &reports::Latency::tpot_ms); }},
    Reader{"e2e_ms.p50",
           [](const Scope& s) {
             return latency(s, &reports::Latency::e2e_ms, &reports::Percentiles::p50);
           }},
    Reader{"e2e_ms.p95",
           [](const Scope& s) {
             return latency(s, &reports::Latency::e2e_ms, &reports::Percentiles::p95);
           }},
    Reader{"e2e_ms.p99",
           [](const Scope& s) {
             return latency(s, &reports::Latency::e2e_ms, &reports::Percentiles::p99);
           }},
    Reader{"e2e_ms.max",
           [](const Scope& s) {
             return latency(s, &reports::Latency::e2e_ms, &reports::Percentiles::max);
           }},
    Reader{"e2e_ms.n", [](const Scope& s) { return latencyCount(s, &reports::Latency::e2e_ms); }},
    Reader{"ttft_overhead_pct",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::ttft_overhead_pct, kMedianCost);
           }},
    Reader{"ttft_overhead_pct.ci95.hi",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::ttft_overhead_pct, kUpperCost);
           }},
    Reader{"ttft_overhead_pct.at_most",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::ttft_overhead_pct, kMostCost);
           }},
    Reader{"tpot_overhead_pct",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::tpot_overhead_pct, kMedianCost);
           }},
    Reader{"tpot_overhead_pct.ci95.hi",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::tpot_overhead_pct, kUpperCost);
           }},
    Reader{"tpot_overhead_pct.at_most",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::tpot_overhead_pct, kMostCost);
           }},
    Reader{"ttft_p95_overhead_pct",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::ttft_p95_overhead_pct, kMedianCost);
           }},
    Reader{"ttft_p95_overhead_pct.ci95.hi",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::ttft_p95_overhead_pct, kUpperCost);
           }},
    Reader{"ttft_p95_overhead_pct.at_most",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::ttft_p95_overhead_pct, kMostCost);
           }},
    Reader{"tpot_p95_overhead_pct",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::tpot_p95_overhead_pct, kMedianCost);
           }},
    Reader{"tpot_p95_overhead_pct.ci95.hi",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::tpot_p95_overhead_pct, kUpperCost);
           }},
    Reader{"tpot_p95_overhead_pct.at_most",
           [](const Scope& s) {
             return latencyOverheads(s, &reports::RateRow::tpot_p95_overhead_pct, kMostCost);
           }},
    Reader{"requests.count",
           [](const Scope& s) { return requestCounts(s, &reports::RateRow::requests); }},
    Reader{"requests.finished",
           [](const Scope& s) { return requestCounts(s, &reports::RateRow::finished); }},
    Reader{"requests.late",
           [](const Scope& s) { return requestCounts(s, &reports::RateRow::late); }},
    Reader{"requests.lost",
           [](const Scope& s) { return requestCounts(s, &reports::RateRow::lost); }},
    Reader{"requests.redone",
           [](const Scope& s) { return requestCounts(s, &reports::RateRow::redone); }},
    Reader{"goodput",
           [](const Scope& s) {
             Values values;
             if (s.row != nullptr)
               for (const reports::RateRow& rate : s.row->rates) values.push_back(rate.goodput);
             return values;
           }},
    Reader{"good_pct",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(goodPercent(r)); });
           }},
    Reader{"knee_qps",
           [](const Scope& s) { return s.row == nullptr ? Values{} : maybe(s.row->knee_qps); }},
};

}  // namespace

std::span<const MetricReader> serverMetrics() { return kServerMetrics; }

}  // namespace faultline::run

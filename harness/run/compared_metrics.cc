#include "harness/run/compared_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/run/bound.h"
#include "harness/run/cell_metrics.h"
#include "harness/run/exposed_overhead.h"
#include "harness/run/serving_record.h"
#include "harness/run/summary.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"
#include "reports/tally.h"

namespace faultline::run {
namespace {

using reports::Run;
using reports::ScenarioResult;
using Samples = std::vector<double>;

/// `valueOf(run)` of each run of the strategy that has one.
template <typename F>
Samples perRun(const ScenarioResult& result, const std::string& strategy, F valueOf) {
  Samples values;
  for (const Run& run : result.runs) {
    if (run.strategy != strategy) continue;
    if (const std::optional<double> value = valueOf(run)) values.push_back(*value);
  }
  return values;
}

Samples throughputs(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!comparable(run) || !run.throughput) return std::nullopt;
    return run.throughput->value;
  });
}

Samples iterationTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    Samples times;
    for (const reports::Iteration& iteration : run.iterations) times.push_back(iteration.ms);
    return comparable(run) ? stats::median(times) : std::nullopt;
  });
}

/// What a median hides: a hang, or an iteration that was interrupted and done again.
Samples longestIterations(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!completed(run) || run.iterations.empty()) return std::nullopt;
    return std::ranges::max(run.iterations, {}, &reports::Iteration::ms).ms;
  });
}

Samples exposedTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    return comparable(run) ? exposedMs(run) : std::nullopt;
  });
}

Samples overheads(const ScenarioResult& result, const std::string& strategy) {
  if (strategy == baseline::kFaultFree) return {};
  constexpr std::uint64_t kAnySeed = 0;  // of the interval, which is not used
  return stats::overhead(blocksOf(result.runs, strategy), kAnySeed).perBlock;
}

/// The longest of each run: its failovers come from the same fault and are not independent.
Samples pauses(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (run.failovers.empty() || !run.void_because.empty()) return std::nullopt;
    return std::ranges::max(run.failovers, {}, &reports::Failover::pause_ms).pause_ms;
  });
}

Samples restartTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (run.restarts.empty() || !run.void_because.empty()) return std::nullopt;
    double sum = 0;
    for (const reports::Restart& one : run.restarts) {
      sum += one.hang_ms + one.isolate_ms + one.load_ms + one.lost_ms;
    }
    return sum;
  });
}

Samples processorTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    constexpr double kBytesPerGib = 1 << 30;
    double cpu_s = 0;
    double sent_gib = 0;
    for (const reports::ResourceUse& use : run.resources) {
      cpu_s += use.cpu_ms / kMillisecondsPerSecond;
      sent_gib += static_cast<double>(use.sent_bytes) / kBytesPerGib;
    }
    if (!comparable(run) || !(sent_gib > 0)) return std::nullopt;
    return cpu_s / sent_gib;
  });
}

/// Of the first so many rates.
template <std::optional<double> reports::ServedRequest::*kLatency>
Samples answered(const Run& run, int rates) {
  Samples times;
  for (const reports::ServedRequest& request : run.requests) {
    if (request.*kLatency && request.rate < rates) times.push_back(*(request.*kLatency));
  }
  return times;
}

/// Of requests that were answered, the median of each run.
template <std::optional<double> reports::ServedRequest::*kLatency>
Samples latencies(const ScenarioResult& result, const std::string& strategy) {
  const int rates = pooledRates(result.runs);
  return perRun(result, strategy, [rates](const Run& run) -> std::optional<double> {
    return comparable(run) ? stats::median(answered<kLatency>(run, rates)) : std::nullopt;
  });
}

/// Of runs that have answered enough of them for it.
Samples slowFirstTokens(const ScenarioResult& result, const std::string& strategy) {
  const int rates = pooledRates(result.runs);
  return perRun(result, strategy, [rates](const Run& run) -> std::optional<double> {
    constexpr double kP95 = 0.95;
    const Samples times = answered<&reports::ServedRequest::ttft_ms>(run, rates);
    if (!comparable(run) || times.size() < stats::kMinSamplesForP95) return std::nullopt;
    return stats::quantile(times, kP95);
  });
}

Samples goodShares(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!comparable(run) || run.requests.empty()) return std::nullopt;
    const auto good = std::ranges::count(run.requests, "finished", &reports::ServedRequest::fate);
    return kWholeInPercent * static_cast<double>(good) / static_cast<double>(run.requests.size());
  });
}

/// Geometric mean over the cells of each run, in which all of them weigh the same.
template <bool kLarge>
Samples callTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    double logarithms = 0;
    int cells = 0;
    for (const reports::CollectiveRow& row : run.collectives) {
      if ((row.size_bytes >= kLargeCell) != kLarge || !(row.p50_ms > 0)) continue;
      logarithms += std::log(row.p50_ms);
      ++cells;
    }
    if (!comparable(run) || cells == 0) return std::nullopt;
    return std::exp(logarithms / cells);
  });
}

Samples lostRequests(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (run.requests.empty()) return std::nullopt;
    int lost = 0;
    for (const reports::RateRow& rate : run.rates) lost += rate.lost;
    return lost;
  });
}

Samples incompleteRuns(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy,
                [](const Run& run) -> std::optional<double> { return completed(run) ? 0 : 1; });
}

Samples wrongElements(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    return static_cast<double>(run.wrong_elements);
  });
}

Samples shareAfterFault(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) { return run.after_pct; });
}

/// Of a run that never came back, as long as it was watched.
Samples timeBack(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!run.after_fault) return std::nullopt;
    return run.back_to_95_pct_ms.value_or(run.after_fault->watched_ms);
  });
}

using Kind = ComparedMetric::Kind;
constexpr std::array kMetrics{
    ComparedMetric{"throughput", "", true, Kind::kSpeed, throughputs, "of each completed run"},
    ComparedMetric{"iteration_ms", "ms", false, Kind::kSpeed, iterationTimes,
                   "median iteration of each completed run"},
    ComparedMetric{"longest_iteration_ms", "ms", false, Kind::kSampled, longestIterations,
                   "longest iteration of each completed run; one that was interrupted and done "
                   "again lasts from its first begin to its final end"},
    ComparedMetric{"overhead_pct", "%", false, Kind::kSpeed, overheads,
                   "of each block, against its fault_free run"},
    ComparedMetric{"exposed_ms", "ms", false, Kind::kSpeed, exposedTimes,
                   "median time of each completed run's iterations after the fault that computing "
                   "stood still for communication"},
    ComparedMetric{"ttft_ms", "ms", false, Kind::kSpeed,
                   latencies<&reports::ServedRequest::ttft_ms>,
                   "median time to the first token of each completed run"},
    ComparedMetric{"tpot_ms", "ms", false, Kind::kSpeed,
                   latencies<&reports::ServedRequest::tpot_ms>,
                   "median time of each further token of each completed run"},
    ComparedMetric{
        "ttft_p95_ms", "ms", false, Kind::kSpeed, slowFirstTokens,
        "p95 of the time to the first token of each completed run (from 60 requests on)"},
    ComparedMetric{"e2e_ms", "ms", false, Kind::kSpeed, latencies<&reports::ServedRequest::e2e_ms>,
                   "median time from arrival to last token of each completed run"},
    ComparedMetric{"good_pct", "%", true, Kind::kSpeed, goodShares,
                   "requests of each completed run that were finished within the objectives"},
    ComparedMetric{"small_calls_ms", "ms", false, Kind::kSpeed, callTimes<false>,
                   "geometric mean of the median calls of a sweep's combinations below 8 MiB"},
    ComparedMetric{"large_calls_ms", "ms", false, Kind::kSpeed, callTimes<true>,
                   "the same from 8 MiB on"},
    ComparedMetric{"pause_ms", "ms", false, Kind::kSampled, pauses,
                   "longest pause at a failover of each run"},
    ComparedMetric{"restart_ms", "ms", false, Kind::kSampled, restartTimes,
                   "hang, isolate, load and lost work of each run"},
    ComparedMetric{"after_pct", "%", true, Kind::kSpeed, shareAfterFault,
                   "work of each run in the second after its last fault, of fault_free's"},
    ComparedMetric{"back_to_95_pct_ms", "ms", false, Kind::kSampled, timeBack,
                   "from the end of each run's last fault until it did 95 % of that; if it never "
                   "did, as long as it was watched"},
    ComparedMetric{"cpu_s_per_gib", "s/GiB", false, Kind::kSampled, processorTimes,
                   "processor time of each completed run for what it sent"},
    ComparedMetric{"lost_requests", "requests", false, Kind::kCounted, lostRequests,
                   "requests that were never served"},
    ComparedMetric{"incomplete_runs", "runs", false, Kind::kCounted, incompleteRuns,
                   "runs that did not do their work to the end"},
    ComparedMetric{"wrong_elements", "elements", false, Kind::kCounted, wrongElements,
                   "elements of results that were wrong"},
};

}  // namespace

std::span<const ComparedMetric> comparedMetrics() { return kMetrics; }

std::vector<std::string> measuredStrategies(const ScenarioResult& result) {
  std::vector<std::string> names;
  for (const reports::StrategyTally& tally : reports::tallyByStrategy(result)) {
    if (tally.runs > 0) names.push_back(tally.strategy);
  }
  return names;
}

std::string unitOf(const ComparedMetric& metric, const ScenarioResult& result) {
  const std::string fixed = metric.unit;
  if (!fixed.empty()) return fixed;
  for (const Run& run : result.runs) {
    if (run.throughput) return run.throughput->unit;
  }
  return "";
}

}  // namespace faultline::run

#include "harness/analysis/compared_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "harness/analysis/cell_metrics.h"
#include "harness/analysis/exposed_overhead.h"
#include "harness/analysis/latency_rows.h"
#include "harness/analysis/metric_scope.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"
#include "reports/tally.h"

namespace faultline::run {
namespace {

using reports::Run;
using reports::ScenarioResult;
using Samples = std::vector<double>;

constexpr double kWithoutEnd = std::numeric_limits<double>::infinity();

/// `valueOf(run)` of each run of the strategy that has one.
template <typename F>
ComparedValues perRun(const ScenarioResult& result, const std::string& strategy, F valueOf) {
  ComparedValues found;
  for (const Run& run : result.runs) {
    if (run.strategy != strategy) continue;
    if (const std::optional<double> value = valueOf(run)) {
      found.values.push_back(*value);
    } else if (cutShort(run)) {
      ++found.lost;
    }
  }
  return found;
}

ComparedValues throughputs(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!comparable(run) || !run.throughput) return std::nullopt;
    return run.throughput->value;
  });
}

ComparedValues iterationTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    Samples times;
    for (const reports::Iteration& iteration : run.iterations) times.push_back(iteration.ms);
    return comparable(run) ? stats::median(times) : std::nullopt;
  });
}

/// What a median hides: a hang, or an iteration that was interrupted and done again.
ComparedValues longestIterations(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!completed(run) || run.iterations.empty()) return std::nullopt;
    return std::ranges::max(run.iterations, {}, &reports::Iteration::ms).ms;
  });
}

ComparedValues exposedTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    return comparable(run) ? exposedMs(run) : std::nullopt;
  });
}

ComparedValues overheads(const ScenarioResult& result, const std::string& strategy) {
  if (strategy == baseline::kReferenceRow) return {};
  constexpr std::uint64_t kAnySeed = 0;  // of the interval, which is not used
  ComparedValues found =
      perRun(result, strategy, [](const Run&) { return std::optional<double>(); });
  found.values = stats::overhead(blocksOf(result.runs, strategy), kAnySeed).perBlock;
  return found;
}

/// The longest of each run: its failovers come from the same fault and are not independent.
ComparedValues pauses(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (run.failovers.empty() || !run.void_because.empty()) return std::nullopt;
    if (cutShort(run)) {
      const bool over = std::ranges::all_of(
          run.failovers, [](const auto& failover) { return failover.resumed_ms.has_value(); });
      return over ? std::nullopt : std::optional(kWithoutEnd);
    }
    return std::ranges::max(run.failovers, {}, &reports::Failover::pause_ms).pause_ms;
  });
}

ComparedValues restartTimes(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (run.restarts.empty() || !run.void_because.empty()) return std::nullopt;
    if (cutShort(run)) return kWithoutEnd;
    double sum = 0;
    for (const reports::Restart& one : run.restarts) {
      sum += one.hang_ms + one.isolate_ms + one.load_ms + one.lost_ms;
    }
    return sum;
  });
}

ComparedValues processorTimes(const ScenarioResult& result, const std::string& strategy) {
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

/// Of requests of the first so many rates; one that was never answered is the slowest of all.
template <std::optional<double> reports::ServedRequest::*kLatency>
Samples latenciesOf(const Run& run, int rates) {
  Samples times;
  for (const reports::ServedRequest& request : run.requests) {
    if (request.rate >= rates) continue;
    const bool has_none = kLatency == &reports::ServedRequest::tpot_ms && request.output < 2;
    if (request.*kLatency) {
      times.push_back(*(request.*kLatency));
    } else if (request.fate == "lost" && !has_none) {
      times.push_back(kWithoutEnd);
    }
  }
  return times;
}

/// The median of each run.
template <std::optional<double> reports::ServedRequest::*kLatency>
ComparedValues latencies(const ScenarioResult& result, const std::string& strategy) {
  const int rates = pooledRates(result.runs);
  return perRun(result, strategy, [rates](const Run& run) -> std::optional<double> {
    return comparable(run) ? stats::median(latenciesOf<kLatency>(run, rates)) : std::nullopt;
  });
}

/// Of runs that have answered enough of them for it.
ComparedValues slowFirstTokens(const ScenarioResult& result, const std::string& strategy) {
  const int rates = pooledRates(result.runs);
  return perRun(result, strategy, [rates](const Run& run) -> std::optional<double> {
    constexpr double kP95 = 0.95;
    const Samples times = latenciesOf<&reports::ServedRequest::ttft_ms>(run, rates);
    if (!comparable(run) || times.size() < stats::kMinSamplesForP95) return std::nullopt;
    return stats::quantile(times, kP95);
  });
}

ComparedValues goodShares(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (!comparable(run) || run.requests.empty()) return std::nullopt;
    const auto good = std::ranges::count(run.requests, "finished", &reports::ServedRequest::fate);
    return kWholeInPercent * static_cast<double>(good) / static_cast<double>(run.requests.size());
  });
}

/// Geometric mean over the cells of each run, in which all of them weigh the same.
template <bool kLarge>
ComparedValues callTimes(const ScenarioResult& result, const std::string& strategy) {
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

ComparedValues lostRequests(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    if (run.requests.empty()) return std::nullopt;
    int lost = 0;
    for (const reports::RateRow& rate : run.rates) lost += rate.lost;
    return lost;
  });
}

ComparedValues incompleteRuns(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy,
                [](const Run& run) -> std::optional<double> { return completed(run) ? 0 : 1; });
}

ComparedValues wrongElements(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) -> std::optional<double> {
    return static_cast<double>(run.wrong_elements);
  });
}

ComparedValues shareAfterFault(const ScenarioResult& result, const std::string& strategy) {
  return perRun(result, strategy, [](const Run& run) { return run.after_pct; });
}

ComparedValues timeBack(const ScenarioResult& result, const std::string& strategy) {
  std::optional<double> watched_ms;
  ComparedValues found = perRun(result, strategy, [&](const Run& run) -> std::optional<double> {
    if (!run.after_fault) return std::nullopt;
    if (!run.back_to_95_pct_ms && !cutShort(run)) {
      const double watched = run.after_fault->watched_ms;
      watched_ms = std::min(watched_ms.value_or(watched), watched);
    }
    return run.back_to_95_pct_ms.value_or(kWithoutEnd);
  });
  found.watched_ms = watched_ms;
  return found;
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
                   "median time to the first token of each completed run; a request that was never "
                   "served is the slowest"},
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
                   "longest pause at a failover of each run; one that was never over ranks above "
                   "all others"},
    ComparedMetric{"restart_ms", "ms", false, Kind::kSampled, restartTimes,
                   "hang, isolate, load and lost work of each run; of one that never went on it "
                   "ranks above all others"},
    ComparedMetric{"after_pct", "%", true, Kind::kSpeed, shareAfterFault,
                   "work of each run in the second after its last fault, of fault_free's"},
    ComparedMetric{
        "back_to_95_pct_ms", "ms", false, Kind::kSampled, timeBack,
        "from the end of each run's last fault until it did 95 % of that; one that never "
        "did ranks above all others"},
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

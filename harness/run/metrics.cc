#include "harness/run/metrics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "harness/baseline/strategy_table.h"
#include "harness/run/blamed_ranks.h"
#include "harness/run/bound.h"
#include "harness/run/cell_metrics.h"
#include "harness/run/confusion.h"
#include "harness/run/metric_scope.h"
#include "harness/run/run_counts.h"
#include "harness/run/slow_rails.h"
#include "harness/run/summary.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using Scope = MetricScope;
using scenario::MetricValue;
using Values = std::vector<MetricValue>;

template <typename Number>
MetricValue number(Number value) {
  return static_cast<double>(value);
}

Values maybe(const std::optional<double>& value) { return value ? Values{*value} : Values{}; }

template <typename PerRun>
Values everyRun(const Scope& scope, PerRun per_run) {
  Values values;
  for (const reports::Run* run : scope.runs) values.push_back(per_run(*run));
  return values;
}

template <typename Event, typename PerEvent>
Values everyEvent(const Scope& scope, std::vector<Event> reports::Run::*events, PerEvent value) {
  Values values;
  for (const reports::Run* run : scope.runs) {
    for (const Event& event : run->*events) values.push_back(value(event));
  }
  return values;
}

/// Nothing of a run in which nothing was compared.
Values elements(const Scope& scope, std::int64_t reports::Run::*count) {
  Values values;
  for (const reports::Run* run : scope.runs) {
    if (run->checked_elements > 0) values.push_back(number(run->*count));
  }
  return values;
}

/// The run's digest against that of fault_free in its block. Nothing when neither has one, or where
/// not all results are there.
Values digestMatches(const Scope& scope) {
  Values values;
  for (const reports::Run* run : scope.runs) {
    const reports::Run* reference =
        findRun(scope.result.runs, std::string(baseline::kFaultFree), run->block);
    if (!didAllWork(*run) || (reference != nullptr && !didAllWork(*reference))) continue;
    const std::string expected = reference == nullptr ? "" : reference->digest;
    if (run->digest.empty() && expected.empty()) continue;
    values.push_back(run->digest == expected);
  }
  return values;
}

std::vector<double> iterationTimes(const Scope& scope) {
  std::vector<double> times;
  for (const reports::Run* run : scope.runs) {
    for (const reports::Iteration& iteration : run->iterations) times.push_back(iteration.ms);
  }
  return times;
}

std::vector<double> detectionTimes(const Scope& scope) {
  std::vector<double> times;
  for (const reports::Run* run : scope.runs) {
    for (const reports::Failover& failover : run->failovers) {
      if (!failover.fault_ms || !failover.detected_ms || !failover.timed()) continue;
      times.push_back(*failover.detected_ms - *failover.fault_ms);
    }
  }
  return times;
}

Values errorsAfterFault(const Scope& scope) {
  Values values;
  for (const reports::Run* run : scope.runs) {
    if (run->faults.empty()) continue;
    for (const reports::RankError& error : run->errors) {
      values.push_back(error.at_ms - run->faults.back().start_ms);
    }
  }
  return values;
}

Values ranksNamed(const Scope& scope) {
  constexpr int kNobody = -1;
  Values values;
  for (const reports::Run* run : scope.runs) {
    for (const reports::RankError& error : run->errors) {
      std::vector<int> ranks = blamedRanks(error.message);
      if (ranks.empty()) ranks.push_back(kNobody);
      for (const int rank : ranks) values.push_back(number(rank));
    }
  }
  return values;
}

std::optional<reports::Percentiles> pausesOf(const Scope& scope) {
  return scope.row == nullptr ? std::nullopt : scope.row->failover_pause_ms;
}

Values pause(const Scope& scope, std::optional<double> reports::Percentiles::*which) {
  const auto pauses = pausesOf(scope);
  return pauses ? maybe((*pauses).*which) : Values{};
}

/// Of exposed communication.
std::optional<reports::Interval> exposedInterval(const Scope& scope) {
  const bool known = scope.row != nullptr && scope.row->exposed_overhead_pct;
  return known ? scope.row->exposed_overhead_pct->ci95 : std::nullopt;
}

Values interval(const Scope& scope, double reports::Interval::*end) {
  if (scope.row == nullptr || !scope.row->overhead_pct || !scope.row->overhead_pct->ci95) return {};
  return {(*scope.row->overhead_pct->ci95).*end};
}

/// Of each row of the matrix that the runs make.
Values rightVerdicts(const Scope& scope) {
  Values values;
  for (const auto& row : confusionOf(scope.result, scope.runs).rows) {
    if (row.fault == reports::ConfusionMatrix::kNoFault) continue;
    if (const auto right = row.rightPercent()) values.push_back(*right);
  }
  return values;
}

int unexplainedFailovers(const Scope& scope) {
  int count = 0;
  for (const auto& row : confusionOf(scope.result, scope.runs).rows) {
    if (row.fault == reports::ConfusionMatrix::kNoFault) count += row.total();
  }
  return count;
}

/// One row per row of scenario::metricTable().
struct Reader {
  std::string_view path;
  Values (*read)(const Scope&);
};

using CollectiveRow = reports::CollectiveRow;
using Failover = reports::Failover;
using Restart = reports::Restart;
using Shrink = reports::Shrink;
using Run = reports::Run;
using ResourceUse = reports::ResourceUse;

/// Of every rank of every run.
template <typename Amount>
Values growth(const Scope& scope, Amount ResourceUse::*from, Amount ResourceUse::*to) {
  return everyEvent(scope, &Run::resources,
                    [=](const ResourceUse& use) { return number(use.*to - use.*from); });
}

/// Sum over a run's ranks, per `unit` bytes of the payload that they sent; nothing without payload.
template <typename Amount>
Values perSent(const Scope& scope, Amount ResourceUse::*amount, double unit) {
  Values values;
  for (const Run* run : scope.runs) {
    double sum = 0;
    double sent = 0;
    for (const ResourceUse& use : run->resources) {
      sum += static_cast<double>(use.*amount);
      sent += static_cast<double>(use.sent_bytes);
    }
    if (sent > 0) values.push_back(sum / (sent / unit));
  }
  return values;
}

/// Nothing of a run without plans.
Values plannedAlgorithms(const Scope& scope) {
  Values values;
  for (const Run* run : scope.runs) {
    const reports::AppliedPlan* const plan = lastPlanOfLargest(*run);
    if (plan != nullptr) values.emplace_back(plan->algorithm);
  }
  return values;
}

Values numbers(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// What the programs of a command told under this name; nothing of runs in which they did not.
Values told(const Scope& scope, const std::string& name) {
  Values values;
  for (const Run* run : scope.runs) {
    const auto found = run->metrics.find(name);
    if (found != run->metrics.end()) values.push_back(found->second.value);
  }
  return values;
}

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
      std::ranges::find(scope.result.summary, baseline::kFaultFree, &reports::Summary::strategy);
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
  constexpr double kPercent = 100;
  int good = 0;
  for (const reports::RateRow& rate : run.rates) good += rate.finished;
  return run.requests.empty() ? 0 : kPercent * good / static_cast<double>(run.requests.size());
}

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr double kMillisecondsPerSecond = 1000;

constexpr std::array kReaders{
    Reader{"status",
           [](const Scope& s) {
             return everyRun(
                 s, [](const Run& r) -> MetricValue { return std::string(nameOf(r.status)); });
           }},
    Reader{"exit_code",
           [](const Scope& s) {
             return everyEvent(s, &Run::processes,
                               [](const reports::ProgramEnd& e) { return number(e.exit_code); });
           }},
    Reader{"errors.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.errors.size()); });
           }},
    Reader{"errors.distinct",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(distinctErrors(r)); });
           }},
    Reader{"errors.after_ms", errorsAfterFault},
    Reader{"errors.names", ranksNamed},
    Reader{"wrong_elements", [](const Scope& s) { return elements(s, &Run::wrong_elements); }},
    Reader{"checked_elements",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.checked_elements); });
           }},
    Reader{"digest_matches", digestMatches},
    Reader{"evidence.ok",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) -> MetricValue { return evidenceIsComplete(r); });
           }},
    Reader{"duration",
           [](const Scope& s) {
             if (s.whole) return Values{s.result.duration_ms};
             return everyRun(s, [](const Run& r) { return number(r.duration_ms); });
           }},
    Reader{"runs.count", [](const Scope& s) { return Values{number(s.runs.size())}; }},
    Reader{"iterations.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(distinctIterations(r)); });
           }},
    Reader{"iteration_ms.p50",
           [](const Scope& s) { return maybe(stats::median(iterationTimes(s))); }},
    Reader{"iteration_ms.max",
           [](const Scope& s) { return maybe(stats::quantile(iterationTimes(s), 1)); }},
    Reader{"throughput.median",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->throughput) return Values{};
             return Values{s.row->throughput->value};
           }},
    Reader{"overhead_pct.median",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->overhead_pct) return Values{};
             return Values{s.row->overhead_pct->median};
           }},
    Reader{"overhead_pct.ci95.lo",
           [](const Scope& s) { return interval(s, &reports::Interval::lo); }},
    Reader{"overhead_pct.ci95.hi",
           [](const Scope& s) { return interval(s, &reports::Interval::hi); }},
    Reader{"overhead_pct.at_most",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->overhead_pct) return Values{};
             return maybe(s.row->overhead_pct->at_most);
           }},
    Reader{"overhead_pct.distinguishable",
           [](const Scope& s) {
             const auto& overhead = s.row == nullptr ? std::nullopt : s.row->overhead_pct;
             if (!overhead || !overhead->distinguishable) return Values{};
             return Values{*overhead->distinguishable};
           }},
    Reader{"exposed_overhead_pct.median",
           [](const Scope& s) {
             if (s.row == nullptr || !s.row->exposed_overhead_pct) return Values{};
             return Values{s.row->exposed_overhead_pct->median};
           }},
    Reader{"exposed_overhead_pct.ci95.lo",
           [](const Scope& s) {
             const auto interval = exposedInterval(s);
             return interval ? Values{interval->lo} : Values{};
           }},
    Reader{"exposed_overhead_pct.ci95.hi",
           [](const Scope& s) {
             const auto interval = exposedInterval(s);
             return interval ? Values{interval->hi} : Values{};
           }},
    Reader{"exposed_overhead_pct.half_width",
           [](const Scope& s) {
             const auto interval = exposedInterval(s);
             return interval ? Values{(interval->hi - interval->lo) / 2} : Values{};
           }},
    Reader{"noise.band_pct",
           [](const Scope& s) {
             return s.result.noise ? Values{s.result.noise->band_pct} : Values{};
           }},
    Reader{"noise.median_band_pct",
           [](const Scope& s) {
             return s.result.noise ? Values{s.result.noise->median_band_pct} : Values{};
           }},
    Reader{"noise.drift_pct",
           [](const Scope& s) {
             return s.result.noise ? maybe(s.result.noise->drift_pct) : Values{};
           }},
    Reader{"failovers.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.failovers.size()); });
           }},
    Reader{"failovers.per_connection",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(failoversPerConnection(r)); });
           }},
    Reader{"failovers.cause",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) -> MetricValue { return f.cause; });
           }},
    Reader{"failovers.verdict",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) -> MetricValue { return f.verdict; });
           }},
    Reader{"failovers.where",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) -> MetricValue { return f.where; });
           }},
    Reader{"failovers.dead_direction",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) -> MetricValue { return f.dead_direction; });
           }},
    Reader{"failovers.rail",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) { return number(f.rail); });
           }},
    Reader{"failovers.resent_bytes",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) { return number(f.resent_bytes); });
           }},
    Reader{"failovers.duplicate_bytes",
           [](const Scope& s) {
             return everyEvent(s, &Run::failovers,
                               [](const Failover& f) { return number(f.duplicate_bytes); });
           }},
    Reader{"verdicts.right_pct", rightVerdicts},
    Reader{"verdicts.unexplained",
           [](const Scope& s) { return Values{number(unexplainedFailovers(s))}; }},
    Reader{"failover_pause_ms.p50",
           [](const Scope& s) { return pause(s, &reports::Percentiles::p50); }},
    Reader{"failover_pause_ms.p95",
           [](const Scope& s) { return pause(s, &reports::Percentiles::p95); }},
    Reader{"failover_pause_ms.p99",
           [](const Scope& s) { return pause(s, &reports::Percentiles::p99); }},
    Reader{"failover_pause_ms.max",
           [](const Scope& s) { return pause(s, &reports::Percentiles::max); }},
    Reader{"failover_pause_ms.n",
           [](const Scope& s) {
             const auto pauses = pausesOf(s);
             return Values{number(pauses ? pauses->n : 0)};
           }},
    Reader{"detection_ms.p50",
           [](const Scope& s) { return maybe(stats::median(detectionTimes(s))); }},
    Reader{"detection_ms.max",
           [](const Scope& s) { return maybe(stats::quantile(detectionTimes(s), 1)); }},
    Reader{"receive_stall_ms.max",
           [](const Scope& s) {
             constexpr double kMicrosecondsPerMillisecond = 1000;
             Values values;
             for (const Run* run : s.runs) {
               const auto found = run->counters.find("longest_receive_stall_us");
               if (found == run->counters.end()) continue;
               values.push_back(static_cast<double>(found->second) / kMicrosecondsPerMillisecond);
             }
             return values;
           }},
    Reader{"failbacks.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.failbacks.size()); });
           }},
    Reader{"degradations.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) {
               const auto found = r.counters.find("degradations");
               return number(found == r.counters.end() ? 0 : found->second);
             });
           }},
    Reader{"degradations.missed",
           [](const Scope& s) {
             return everyRun(s, [&](const Run& r) {
               return number(slowStrikes(r, ranksPerNode(s.result)).missed);
             });
           }},
    Reader{"degradations.unexplained",
           [](const Scope& s) {
             return everyRun(s, [&](const Run& r) {
               return number(unexplainedDegradations(r, ranksPerNode(s.result)));
             });
           }},
    Reader{"restarts.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.restarts.size()); });
           }},
    Reader{"restarts.hang_ms",
           [](const Scope& s) {
             return everyEvent(s, &Run::restarts,
                               [](const Restart& r) { return number(r.hang_ms); });
           }},
    Reader{"restarts.isolate_ms",
           [](const Scope& s) {
             return everyEvent(s, &Run::restarts,
                               [](const Restart& r) { return number(r.isolate_ms); });
           }},
    Reader{"restarts.load_ms",
           [](const Scope& s) {
             return everyEvent(s, &Run::restarts,
                               [](const Restart& r) { return number(r.load_ms); });
           }},
    Reader{"restarts.lost_iterations",
           [](const Scope& s) {
             return everyEvent(s, &Run::restarts,
                               [](const Restart& r) { return number(r.lost_iterations); });
           }},
    Reader{"plans.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.plans.size()); });
           }},
    Reader{"plans.changes",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(planChanges(r)); });
           }},
    Reader{"plans.algorithm", plannedAlgorithms},
    Reader{"cells.time_over_best",
           [](const Scope& s) { return numbers(cellsOverBest(s, Cells::kAll)); }},
    Reader{"cells.large.time_over_best",
           [](const Scope& s) { return numbers(cellsOverBest(s, Cells::kLarge)); }},
    Reader{"cells.large.time_over_bound",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_bound));
           }},
    Reader{"cells.large.time_over_ideal",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_ideal));
           }},
    Reader{"cells.large.time_over_model",
           [](const Scope& s) {
             return numbers(cellRatios(s, Cells::kLarge, &CollectiveRow::time_over_model));
           }},
    Reader{"cells.large.busbw_kept_pct",
           [](const Scope& s) { return numbers(cellsKept(s, Cells::kLarge)); }},
    Reader{"shrinks.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.shrinks.size()); });
           }},
    Reader{"shrinks.ranks",
           [](const Scope& s) {
             return everyEvent(s, &Run::shrinks, [](const Shrink& e) { return number(e.ranks); });
           }},
    Reader{"shrinks.notice_ms",
           [](const Scope& s) {
             return everyEvent(s, &Run::shrinks, [](const Shrink& e) {
               return number(e.noticed_ms - e.fault_ms.value_or(e.noticed_ms));
             });
           }},
    Reader{"shrinks.rebuild_ms",
           [](const Scope& s) {
             return everyEvent(s, &Run::shrinks,
                               [](const Shrink& e) { return number(e.resumed_ms - e.noticed_ms); });
           }},
    Reader{"exclusions.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.exclusions.size()); });
           }},
    Reader{"exclusions.rank",
           [](const Scope& s) {
             return everyEvent(s, &Run::exclusions,
                               [](const reports::Exclusion& e) { return number(e.rank); });
           }},
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
    Reader{"cpu_s_per_gib",
           [](const Scope& s) {
             return perSent(s, &ResourceUse::cpu_ms, kGiB / kMillisecondsPerSecond);
           }},
    Reader{"system_calls_per_mib",
           [](const Scope& s) { return perSent(s, &ResourceUse::system_calls, kMiB); }},
    Reader{"memory_growth_bytes.end",
           [](const Scope& s) {
             return growth(s, &ResourceUse::memory_start_bytes, &ResourceUse::memory_end_bytes);
           }},
    Reader{"memory_growth_bytes.max",
           [](const Scope& s) {
             return growth(s, &ResourceUse::memory_start_bytes, &ResourceUse::memory_max_bytes);
           }},
    Reader{"open_files_growth.end",
           [](const Scope& s) {
             return growth(s, &ResourceUse::open_files_start, &ResourceUse::open_files_end);
           }},
    Reader{"open_files_growth.max",
           [](const Scope& s) {
             return growth(s, &ResourceUse::open_files_start, &ResourceUse::open_files_max);
           }},
};

}  // namespace

scenario::MetricLookup metricsOf(const reports::ScenarioResult& result) {
  return [&result](const std::string& strategy, const std::string& metric) {
    if (metric.starts_with(scenario::kProgramMetrics)) {
      return told(scopeOf(result, strategy), metric.substr(scenario::kProgramMetrics.size()));
    }
    for (const Reader& reader : kReaders) {
      if (reader.path == metric) return reader.read(scopeOf(result, strategy));
    }
    return Values{};
  };
}

}  // namespace faultline::run

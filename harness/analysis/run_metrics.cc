#include <algorithm>
#include <array>
#include <string>

#include "base/clock.h"
#include "harness/analysis/blamed_ranks.h"
#include "harness/analysis/cause_matrix.h"
#include "harness/analysis/metric_readers.h"
#include "harness/analysis/run_counts.h"
#include "harness/analysis/slow_rails.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using metric::everyRun;
using metric::maybe;
using metric::number;
using scenario::MetricValue;
using Failover = reports::Failover;
using Reader = MetricReader;
using ResourceUse = reports::ResourceUse;
using Restart = reports::Restart;
using Run = reports::Run;
using Scope = MetricScope;
using Shrink = reports::Shrink;
using Values = MetricReader::Values;

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
        findRun(scope.result.runs, std::string(baseline::kReferenceRow), run->block);
    if (!didAllWork(*run) || (reference != nullptr && !didAllWork(*reference))) continue;
    const std::string expected = reference == nullptr ? "" : reference->digest;
    if (run->digest.empty() && expected.empty()) continue;
    values.push_back(run->digest == expected);
  }
  return values;
}

/// Of a run that was cut short, the iteration that it was busy with took at least so long, and
/// those that it never began take at least as long as any. The median is known all the same when it
/// is one of those that ended.
struct IterationTimes {
  std::vector<double> ms;  ///< with the `unfinished` at the end
  std::size_t unfinished = 0;
  std::size_t missing = 0;  ///< that were never begun
  bool allCounted = true;   ///< nobody knows how many are missing
};

IterationTimes iterationTimes(const Scope& scope) {
  IterationTimes times;
  std::vector<double> unfinished;
  for (const reports::Run* run : scope.runs) {
    for (const reports::Iteration& iteration : run->iterations) times.ms.push_back(iteration.ms);
    if (!cutShort(*run)) continue;
    unfinished.push_back(run->unfinished ? run->unfinished->ms : 0);
    const std::optional<int> missing = iterationsLeftUndone(scope.result, *run);
    times.allCounted = times.allCounted && missing.has_value();
    // The one that it was busy with is one of them.
    if (missing) times.missing += static_cast<std::size_t>(std::max(0, *missing - 1));
  }
  times.unfinished = unfinished.size();
  times.ms.insert(times.ms.end(), unfinished.begin(), unfinished.end());
  return times;
}

Values medianIteration(const Scope& scope) {
  IterationTimes times = iterationTimes(scope);
  if (!times.allCounted) return {};
  if (times.unfinished == 0 || times.ms.empty()) return maybe(stats::median(times.ms));
  const std::size_t ended = times.ms.size() - times.unfinished;
  const double longest = *std::ranges::max_element(times.ms);
  times.ms.insert(times.ms.end(), times.missing, longest);
  const std::size_t middle = times.ms.size() / 2;  // the upper one of two
  if (middle >= ended) return {scenario::AtLeast{*stats::median(times.ms)}};
  std::fill(times.ms.begin() + static_cast<std::ptrdiff_t>(ended), times.ms.end(), longest);
  return maybe(stats::median(times.ms));
}

Values longestIteration(const Scope& scope) {
  return maybe(stats::quantile(iterationTimes(scope).ms, 1));
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

Values afterReturn(const Scope& scope) {
  Values values;
  for (const reports::Run* run : scope.runs) {
    for (const double time : deliveriesAfterReturn(*run, ranksPerNode(scope.result))) {
      values.push_back(time);
    }
  }
  return values;
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

MetricValue noticeTime(const Shrink& made) {
  return number(made.noticed_ms - made.fault_ms.value_or(made.noticed_ms));
}
MetricValue rebuildTime(const Shrink& made) { return number(made.resumed_ms - made.noticed_ms); }

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;

constexpr std::array kRunMetrics{
    Reader{"status",
           [](const Scope& s) {
             return everyRun(
                 s, [](const Run& r) -> MetricValue { return std::string(nameOf(r.status)); });
           }},
    Reader{"message",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) -> MetricValue { return r.message; });
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
    Reader{"errors.message",
           [](const Scope& s) {
             return everyEvent(s, &Run::errors, [](const reports::RankError& e) -> MetricValue {
               return e.message;
             });
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
    Reader{"iteration_ms.p50", medianIteration},
    Reader{"iteration_ms.max", longestIteration},
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
    Reader{"failovers.after_return_ms", afterReturn},
    Reader{"verdicts.right_pct", rightVerdicts},
    Reader{"verdicts.unexplained",
           [](const Scope& s) { return Values{number(unexplainedFailovers(s))}; }},
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
    Reader{"shrinks.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.shrinks.size()); });
           }},
    Reader{"shrinks.ranks",
           [](const Scope& s) {
             return everyEvent(s, &Run::shrinks, [](const Shrink& e) { return number(e.ranks); });
           }},
    Reader{"shrinks.notice_ms",
           [](const Scope& s) { return everyEvent(s, &Run::shrinks, noticeTime); }},
    Reader{"shrinks.rebuild_ms",
           [](const Scope& s) { return everyEvent(s, &Run::shrinks, rebuildTime); }},
    Reader{"rebuilds.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.rebuilds.size()); });
           }},
    Reader{"rebuilds.notice_ms",
           [](const Scope& s) { return everyEvent(s, &Run::rebuilds, noticeTime); }},
    Reader{"rebuilds.rebuild_ms",
           [](const Scope& s) { return everyEvent(s, &Run::rebuilds, rebuildTime); }},
    Reader{"exclusions.count",
           [](const Scope& s) {
             return everyRun(s, [](const Run& r) { return number(r.exclusions.size()); });
           }},
    Reader{"exclusions.rank",
           [](const Scope& s) {
             return everyEvent(s, &Run::exclusions,
                               [](const reports::Exclusion& e) { return number(e.rank); });
           }},
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

std::span<const MetricReader> runMetrics() { return kRunMetrics; }

}  // namespace faultline::run

#include "harness/analysis/after_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/progress.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using reports::Iteration;
using reports::Run;
using Pieces = std::vector<stats::Progress::Piece>;

/// What one run did, and what fault_free did of the same in a millisecond.
struct Work {
  const char* counted = "";
  Pieces pieces;
  double endMs = 0;      ///< what is later says nothing of the speed
  double freePerMs = 0;  ///< not positive: not known
};

double endOf(const Iteration& iteration) { return iteration.start_ms + iteration.ms; }

/// Of a job whose ranks have left, those that are left, as a share of all.
double shareOfRanks(const Run& run, const scenario::Scenario& scenario, double at_ms) {
  double share = 1;
  for (const reports::Shrink& shrink : run.shrinks) {
    if (shrink.resumed_ms <= at_ms) {
      share = static_cast<double>(shrink.ranks) / scenario.cluster.ranks();
    }
  }
  return share;
}

/// Each iteration that was new when it was done. `worth(index)` is what one counts for.
template <typename Worth>
Pieces newIterations(const scenario::Scenario& scenario, const Run& run, Worth worth) {
  Pieces pieces;
  int next = std::numeric_limits<int>::min();
  int step = 1;  // programs may tell of every hundredth iteration only
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const Iteration& one = run.iterations[i];
    const bool followed = i + 1 < run.iterations.size() && run.iterations[i + 1].index > one.index;
    if (followed) step = run.iterations[i + 1].index - one.index;
    if (one.index < next) continue;
    next = one.index + step;
    // Nothing was done of an iteration that was interrupted while others were done again.
    const bool interrupted = one.attempts > 1 && i > 0;
    const double begin =
        interrupted ? std::max(one.start_ms, endOf(run.iterations[i - 1])) : one.start_ms;
    pieces.push_back(
        {begin, endOf(one), worth(one.index) * step * shareOfRanks(run, scenario, begin)});
  }
  return pieces;
}

/// From the begin of the first to that of the last, so that the time between two is in it.
double meanPerMs(const Pieces& pieces) {
  if (pieces.empty()) return 0;
  const auto [first, last] = std::ranges::minmax(pieces, {}, &stats::Progress::Piece::begin);
  const double length = last.begin - first.begin;
  if (length <= 0) return last.end > last.begin ? last.amount / (last.end - last.begin) : 0;
  double amount = -last.amount;
  for (const auto& piece : pieces) amount += piece.amount;
  return amount / length;
}

double lastEnd(const Pieces& pieces) {
  return pieces.empty() ? 0 : std::ranges::max(pieces, {}, &stats::Progress::Piece::end).end;
}

Work iterationsOf(const scenario::Scenario& scenario, const Run& run, const Run& free) {
  const auto equal = [](int /*index*/) { return 1.0; };
  Work work{.counted = "iterations",
            .pieces = newIterations(scenario, run, equal),
            .freePerMs = meanPerMs(newIterations(scenario, free, equal))};
  work.endMs = lastEnd(work.pieces);
  return work;
}

/// Calls of a sweep are unlike each other: one of 64 MiB is worth a thousand of 64 KiB.
Work callsOf(const scenario::Scenario& scenario, const Run& run, const Run& free) {
  std::map<int, double> lengths;  // until the next call begins
  for (std::size_t i = 0; i < free.iterations.size(); ++i) {
    const Iteration& one = free.iterations[i];
    const bool last = i + 1 == free.iterations.size();
    lengths[one.index] = last ? one.ms : free.iterations[i + 1].start_ms - one.start_ms;
  }
  Work work{.counted = "calls",
            .pieces = newIterations(scenario, run,
                                    [&](int index) {
                                      const auto found = lengths.find(index);
                                      return found == lengths.end() ? 0 : found->second;
                                    }),
            .freePerMs = lengths.empty() ? 0.0 : 1.0};
  work.endMs = lastEnd(work.pieces);
  return work;
}

Pieces requestsOf(const Run& run, std::optional<int> rate) {
  Pieces pieces;
  for (const reports::ServedRequest& request : run.requests) {
    if (!request.arrival_ms || !request.e2e_ms || (rate && request.rate != *rate)) continue;
    pieces.push_back({*request.arrival_ms, *request.arrival_ms + *request.e2e_ms, 1});
  }
  return pieces;
}

/// Requests come whether they are served or not, at a rate of their own each for a while.
Work servedOf(const Run& run, const Run& free, double reverted_ms) {
  Work work{.counted = "requests", .pieces = requestsOf(run, std::nullopt)};
  int rate = 0;
  for (const reports::ServedRequest& request : run.requests) {
    if (request.arrival_ms && *request.arrival_ms <= reverted_ms) {
      rate = std::max(rate, request.rate);
    }
  }
  // When the last of them has come there is less and less to do.
  for (const reports::ServedRequest& request : run.requests) {
    if (request.rate == rate) work.endMs = std::max(work.endMs, request.arrival_ms.value_or(0));
  }
  work.freePerMs = meanPerMs(requestsOf(free, rate));
  return work;
}

Pieces bytesOf(const Run& run) {
  Pieces pieces;
  for (const reports::RailSeries& rail : run.rail_series) {
    for (std::size_t bin = 0; bin < rail.tx_bytes.size(); ++bin) {
      const double begin = rail.start_ms + static_cast<double>(bin) * rail.bin_ms;
      const auto bytes = static_cast<double>(rail.tx_bytes[bin]);
      if (bytes > 0) pieces.push_back({begin, begin + rail.bin_ms, bytes});
    }
  }
  return pieces;
}

Work sentOf(const Run& run, const Run& free) {
  Work work{.counted = "rail_bytes", .pieces = bytesOf(run)};
  work.endMs = std::min(lastEnd(work.pieces), run.duration_ms);
  const Pieces healthy = bytesOf(free);
  if (healthy.empty()) return work;
  double bytes = 0;
  for (const auto& piece : healthy) bytes += piece.amount;
  const double begin = std::ranges::min(healthy, {}, &stats::Progress::Piece::begin).begin;
  work.freePerMs = bytes / (lastEnd(healthy) - begin);
  return work;
}

Work workOf(const scenario::Scenario& scenario, const Run& run, const Run& free,
            double reverted_ms) {
  constexpr std::size_t kFewestMarks = 3;  // of fault_free: two iterations that were seen whole
  if (scenario.workload.kind->hasRequests) return servedOf(run, free, reverted_ms);
  if (scenario.workload.kind->hasCells) return callsOf(scenario, run, free);
  if (!scenario.workload.kind->runsRanks && free.iterations.size() < kFewestMarks) {
    return sentOf(run, free);
  }
  return iterationsOf(scenario, run, free);
}

bool endedForGood(const Run& run) {
  return !completed(run) &&
         (run.status == reports::RunStatus::kFailed || run.status == reports::RunStatus::kHung);
}

}  // namespace

std::optional<reports::AfterFault> afterFault(const scenario::Scenario& scenario, const Run& run,
                                              const Run& free) {
  if (!run.faulted || run.faults.empty()) return std::nullopt;
  const bool failed = endedForGood(run);
  if (!failed && !completed(run)) return std::nullopt;
  double reverted_ms = 0;
  for (const reports::AppliedFault& fault : run.faults) {
    // Of a run that failed, one that was to last until its end left no time after it.
    if (!fault.end_ms || (failed && !fault.asked.ms)) return std::nullopt;
    reverted_ms = std::max(reverted_ms, *fault.end_ms);
  }
  const Work work = workOf(scenario, run, free, reverted_ms);
  if (!(work.freePerMs > 0)) return std::nullopt;

  reports::AfterFault after{.counted = work.counted, .reverted_ms = reverted_ms};
  after.watched_ms = std::max(0.0, (failed ? run.duration_ms : work.endMs) - reverted_ms);
  if (failed) {
    after.after_pct = 0;
    return after;
  }
  if (after.watched_ms < kAfterWindowMs) return std::nullopt;
  const double whole = work.freePerMs * kAfterWindowMs;
  const stats::Progress progress(work.pieces);
  after.after_pct = progress.doneIn(reverted_ms, kAfterWindowMs) / whole * kWholeInPercent;
  const auto back =
      progress.firstWindow(reverted_ms, work.endMs, kAfterWindowMs, whole * kBackShare);
  if (back) after.back_ms = *back - reverted_ms;
  return after;
}

std::string whyNothingAfterFault(const reports::ScenarioResult& result, const Run& run) {
  const std::string whose = fmt::format("{}, block {}", run.strategy, run.block + 1);
  if (!run.void_because.empty()) return fmt::format("{} is void: {}.", whose, run.void_because);
  if (!run.faulted || run.faults.empty()) return fmt::format("{} had no fault.", whose);
  const Run* const free = findRun(result.runs, std::string(baseline::kReferenceRow), run.block);
  if (free == nullptr || !comparable(*free)) {
    return fmt::format("{} has no fault_free run in its block that did its work.", whose);
  }
  double reverted_ms = 0;
  for (const reports::AppliedFault& fault : run.faults) {
    if (!fault.end_ms || !fault.asked.ms) {
      return fmt::format("{}: {} lasted until the end of the run, so that nothing came after it.",
                         whose, fault.kind);
    }
    reverted_ms = std::max(reverted_ms, *fault.end_ms);
  }
  double end_ms = run.iterations.empty() ? run.duration_ms : endOf(run.iterations.back());
  for (const reports::ServedRequest& request : run.requests) {
    end_ms = request.arrival_ms.value_or(end_ms);  // they are in the order of arrival
  }
  if (end_ms - reverted_ms < kAfterWindowMs) {
    const bool server = !run.requests.empty();
    const std::string when =
        end_ms > reverted_ms
            ? fmt::format("{:.0f} ms after its last fault was taken back", end_ms - reverted_ms)
            : "before its last fault was taken back";
    return fmt::format(
        "{}: {} {}; a second after it is needed: raise '{}', or end the fault earlier.", whose,
        server ? "the last request came" : "the work ended", when,
        server ? "requests" : "iterations");
  }
  return fmt::format("{}: nobody knows how fast fault_free was.", whose);
}

void measureAfterFaults(const scenario::Scenario& scenario, std::span<Run> runs) {
  for (Run& run : runs) {
    if (!run.void_because.empty()) continue;
    const Run* const free = findRun(runs, std::string(baseline::kReferenceRow), run.block);
    if (free == nullptr || free == &run || !comparable(*free)) continue;
    run.after_fault = afterFault(scenario, run, *free);
    if (!run.after_fault) continue;
    run.after_pct = run.after_fault->after_pct;
    run.back_to_95_pct_ms = run.after_fault->back_ms;
  }
}

std::optional<reports::AfterSpread> afterPercentOf(std::span<const Run> runs,
                                                   const std::string& strategy) {
  std::vector<double> values;
  for (const Run& run : runs) {
    if (run.strategy == strategy && run.after_pct) values.push_back(*run.after_pct);
  }
  if (values.empty()) return std::nullopt;
  return reports::AfterSpread{.median = *stats::median(values),
                              .min = std::ranges::min(values),
                              .n = static_cast<int>(values.size())};
}

std::optional<reports::BackSpread> backOf(std::span<const Run> runs, const std::string& strategy) {
  constexpr double kForEver = std::numeric_limits<double>::infinity();
  std::vector<double> times;     // infinite where it was not back
  std::vector<double> at_least;  // as far as it was watched
  reports::BackSpread spread;
  for (const Run& run : runs) {
    if (run.strategy != strategy || !run.after_fault) continue;
    ++spread.n;
    times.push_back(run.back_to_95_pct_ms.value_or(kForEver));
    at_least.push_back(times.back());
    if (run.back_to_95_pct_ms) continue;
    ++spread.never;
    if (endedForGood(run)) {
      ++spread.ended;
      continue;
    }
    at_least.back() = run.after_fault->watched_ms;
    spread.watched_ms = std::min(spread.watched_ms.value_or(kForEver), at_least.back());
  }
  if (times.empty()) return std::nullopt;
  const auto finite = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? value : std::nullopt;
  };
  spread.median = finite(stats::median(times));
  spread.max = finite(stats::quantile(times, 1));
  if (!spread.median) spread.median_at_least = finite(stats::median(at_least));
  if (!spread.max) spread.max_at_least = finite(stats::quantile(at_least, 1));
  return spread;
}

}  // namespace faultline::run

#include "harness/analysis/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "harness/analysis/after_fault.h"
#include "harness/analysis/exposed_overhead.h"
#include "harness/analysis/latency_rows.h"
#include "harness/analysis/modelled_row.h"
#include "harness/analysis/noise.h"
#include "harness/analysis/overhead_row.h"
#include "harness/analysis/run_counts.h"
#include "harness/analysis/serving_case.h"
#include "harness/analysis/speed_bound.h"
#include "harness/baseline/modelled_options.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

/// The completed runs of one strategy that have a throughput.
std::vector<const reports::Run*> measured(std::span<const reports::Run> runs,
                                          const std::string& strategy) {
  std::vector<const reports::Run*> found;
  for (const reports::Run& run : runs) {
    if (run.strategy == strategy && comparable(run) && run.throughput) found.push_back(&run);
  }
  return found;
}

std::optional<reports::Quantity> medianThroughput(const std::vector<const reports::Run*>& runs) {
  std::vector<double> values;
  for (const reports::Run* run : runs) values.push_back(run->throughput->value);
  const auto median = stats::median(values);
  if (!median) return std::nullopt;
  return reports::Quantity{*median, runs.front()->throughput->unit};
}

std::optional<stats::NoiseBand> bandOf(const std::optional<reports::Noise>& noise) {
  if (!noise) return std::nullopt;
  return stats::NoiseBand{noise->band_pct, noise->median_band_pct};
}

/// As `faultline describe` has it, and of a schedule that is written down its file.
std::string meaningOf(const scenario::Strategy& strategy) {
  const baseline::StrategySpec* const spec = baseline::findStrategy(strategy.kind());
  if (spec == nullptr) return "";
  if (!spec->written) return std::string(spec->summary);
  return fmt::format("{} Its file: {}.", spec->summary,
                     strategy.options.get<std::string>(baseline::kSchedule));
}

}  // namespace

std::optional<double> speedOf(const reports::Run& run, int rates) {
  if (!comparable(run)) return std::nullopt;
  if (run.requests.empty()) {
    return run.throughput ? std::optional(run.throughput->value) : std::nullopt;
  }
  constexpr double kMilliseconds = 1000;  // of a second
  double sum = 0;
  int served = 0;
  for (const reports::ServedRequest& request : run.requests) {
    if (!request.e2e_ms || request.rate >= rates) continue;
    sum += *request.e2e_ms;
    ++served;
  }
  if (sum <= 0) return std::nullopt;
  return kMilliseconds * served / sum;
}

std::vector<stats::Block> blocksOf(std::span<const reports::Run> runs,
                                   const std::string& strategy) {
  const int rates = pooledRates(runs);
  std::vector<stats::Block> blocks;
  for (const reports::Run* run : measured(runs, strategy)) {
    const reports::Run* reference = findRun(runs, std::string(baseline::kReferenceRow), run->block);
    const auto free = reference == nullptr ? std::nullopt : speedOf(*reference, rates);
    const auto own = speedOf(*run, rates);
    if (free && own) blocks.push_back({*free, *own});
  }
  return blocks;
}

reports::Percentiles percentilesOf(std::span<const double> values) {
  static_assert(reports::Percentiles::kSamplesForP95 == stats::kMinSamplesForP95 &&
                reports::Percentiles::kSamplesForP99 == stats::kMinSamplesForP99);
  const stats::Distribution distribution = stats::describe(values);
  return {distribution.p50, distribution.p95, distribution.p99, distribution.max,
          static_cast<int>(distribution.n)};
}

std::optional<reports::Percentiles> pausesOf(std::span<const reports::Run> runs,
                                             const std::string& strategy) {
  std::vector<double> values;
  for (const reports::Run& run : runs) {
    if (run.strategy != strategy || !run.faulted || !run.void_because.empty()) continue;
    for (const reports::Failover& failover : run.failovers) values.push_back(failover.pause_ms);
  }
  if (values.empty()) return std::nullopt;
  return percentilesOf(values);
}

namespace {

/// What one must know of the row's times; empty: nothing.
std::string untimedNote(std::span<const reports::Run> runs, const std::string& strategy) {
  int untimed = 0;
  for (const reports::Run& run : runs) {
    if (run.strategy != strategy) continue;
    untimed += static_cast<int>(std::ranges::count_if(
        run.failovers, [](const reports::Failover& failover) { return !failover.timed(); }));
  }
  if (untimed == 0) return "";
  return fmt::format(
      "timed from when the kernel said that the fault was done, which took it more "
      "than {} ms: {}",
      reports::Failover::kMomentKnownMs,
      untimed == 1 ? "1 failover" : fmt::format("{} failovers", untimed));
}

double wholeMs(const reports::Restart& restart) {
  return restart.hang_ms + restart.isolate_ms + restart.load_ms + restart.lost_ms;
}

/// What the row's overhead in this block would be with the usual watchdog; nullopt: not known.
std::optional<double> overheadWithUsualWatchdog(const reports::Run& run,
                                                const reports::Run& reference) {
  if (!run.throughput || !reference.throughput || run.restarts.empty()) return std::nullopt;
  const double speed = run.throughput->value;
  const int work = distinctIterations(run);
  if (!(speed > 0) || !(reference.throughput->value > 0) || work == 0) return std::nullopt;
  double longer_ms = 0;
  for (const reports::Restart& restart : run.restarts) {
    if (!restart.unscaled_total_ms) return std::nullopt;
    longer_ms += *restart.unscaled_total_ms - wholeMs(restart);
  }
  const double time_s = work / speed + longer_ms / kMillisecondsPerSecond;
  return kWholeInPercent * (time_s * reference.throughput->value / work - 1);
}

/// What a restart costs follows from its watchdog, which is short so that runs are. Empty for rows
/// that did not restart, and for servers, whose overhead is of latencies.
std::string watchdogNote(const scenario::Scenario& scenario, const scenario::Strategy& strategy,
                         std::span<const reports::Run> runs) {
  const baseline::StrategySpec* const spec = baseline::findStrategy(strategy.kind());
  if (spec == nullptr || !spec->restarts || scenario.workload.kind->hasRequests) return "";
  std::vector<double> usual;
  bool restarted = false;
  for (const reports::Run* run : measured(runs, strategy.name)) {
    restarted = restarted || !run->restarts.empty();
    const reports::Run* const free =
        findRun(runs, std::string(baseline::kReferenceRow), run->block);
    if (free == nullptr || !completed(*free)) continue;
    if (const auto overhead = overheadWithUsualWatchdog(*run, *free)) usual.push_back(*overhead);
  }
  if (!restarted) return "";
  const std::string own = formatDuration(strategy.options.get<Duration>(baseline::kWatchdog));
  const auto median = stats::median(usual);
  if (!median) return fmt::format("its watchdog is {}; jobs have 10min", own);
  return fmt::format(
      "its watchdog is {}; with the usual one of 10min its overhead would be {:.0f} %", own,
      *median);
}

/// A row may be below the best possible by as much as measurements vary (betterThanPossible).
std::string belowBoundNote(const reports::Summary& row) {
  const bool below = row.bound_pct && row.overhead_pct && row.overhead_pct->median < *row.bound_pct;
  if (!below || row.mis_measured) return "";
  return fmt::format(
      "{:.1f} % is below the best possible {:.1f} % by less than measurements vary; besides, ports "
      "that were idle let a burst pass above their rate",
      row.overhead_pct->median, *row.bound_pct);
}

void addNote(reports::Summary& row, const std::string& note) {
  if (note.empty()) return;
  row.note += (row.note.empty() ? "" : "; ") + note;
}

}  // namespace

const reports::Run* findRun(std::span<const reports::Run> runs, const std::string& strategy,
                            int block) {
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const reports::Run& run) {
    return run.strategy == strategy && run.block == block;
  });
  return found == runs.end() ? nullptr : &*found;
}

std::vector<reports::Summary> summarise(const scenario::Scenario& scenario,
                                        std::span<const reports::Run> runs, std::uint64_t seed) {
  const std::optional<reports::Noise> noise = noiseOf(scenario, runs, seed);
  std::vector<reports::Summary> rows;
  for (const scenario::Strategy& strategy : scenario.strategies) {
    if (baseline::isModelled(strategy.kind())) {
      const bool asMeasured =
          strategy.options.has(baseline::kTimes) &&
          strategy.options.get<std::string>(baseline::kTimes) == baseline::kAsMeasured;
      rows.push_back(modelledRow(strategy, servingCase(scenario, runs, asMeasured)));
      rows.back().meaning = meaningOf(strategy);
      continue;
    }
    reports::Summary& row = rows.emplace_back();
    row.strategy = strategy.name;
    row.meaning = meaningOf(strategy);
    const auto measured_runs = measured(runs, strategy.name);
    row.n = static_cast<int>(measured_runs.size());
    row.throughput = medianThroughput(measured_runs);
    row.failover_pause_ms = pausesOf(runs, strategy.name);
    row.after_pct = afterPercentOf(runs, strategy.name);
    row.back_to_95_pct_ms = backOf(runs, strategy.name);
    addLatencies(scenario, runs, seed, row);
    row.bound_pct = boundPercent(scenario, runs, strategy.name);
    row.note = whyNoBound(scenario, runs, strategy.name);
    if (const std::string untimed = untimedNote(runs, strategy.name); !untimed.empty()) {
      row.note += (row.note.empty() ? "" : "; ") + untimed;
    }
    if (strategy.name == baseline::kReferenceRow) {
      if (row.pooled_rates && *row.pooled_rates < std::ssize(row.rates)) {
        row.note += fmt::format(
            "{}it keeps up with the first {} of {} rates; overhead, latencies and noise of all "
            "rows "
            "are of those, as beyond them requests wait for each other",
            row.note.empty() ? "" : "; ", *row.pooled_rates, row.rates.size());
      }
      continue;
    }
    const std::vector<stats::Block> blocks = blocksOf(runs, strategy.name);
    row.overhead_pct = overheadRow(stats::overhead(blocks, seed), bandOf(noise));
    row.exposed_overhead_pct = exposedOverhead(scenario, runs, strategy.name, seed);
    addNote(row, watchdogNote(scenario, strategy, runs));
    if (!row.overhead_pct) continue;
    row.n = static_cast<int>(blocks.size());
    row.mis_measured = betterThanPossible(row, noise);
    addNote(row, belowBoundNote(row));
    if (row.mis_measured) {
      const std::string known = row.note.empty() ? "" : "; " + row.note;
      row.note =
          "mis-measured: better than possible by more than measurements vary; the machine was too "
          "noisy, or its fault_free runs were too slow" +
          known;
    }
  }
  return rows;
}

}  // namespace faultline::run

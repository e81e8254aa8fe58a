#include "harness/scenario/expectation_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/metric_table.h"
#include "harness/scenario/sweep.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/quantile.h"

namespace faultline::scenario {
namespace {

using baseline::StrategySpec;

/// The algorithm of AllReduce whose authors have a formula for its time (schedule/r2_formula.h).
constexpr std::string_view kWithFormula = "r2_allreduce";
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// What a metric's strategy does, and where it is in the scenario.
struct Row {
  const Strategy& strategy;
  const StrategySpec& kind;
};

std::optional<Row> rowOf(const MetricName& name, const Scenario& scenario) {
  const Strategy* const strategy = scenario.find(name.strategy);
  if (strategy == nullptr) return std::nullopt;
  const StrategySpec* const kind = baseline::findStrategy(strategy->kind());
  if (kind == nullptr) return std::nullopt;
  return Row{*strategy, *kind};
}

bool failsOver(const StrategySpec& kind) { return kind.meetsFaults && kind.resilient; }

bool isOfFailovers(std::string_view metric) {
  if (metric == "failovers.count" || metric == "failovers.per_connection") return false;
  if (metric == "failover_pause_ms.n") return false;
  constexpr std::array<std::string_view, 4> kPrefixes{"failovers.", "failover_pause_ms.",
                                                      "detection_ms.", "verdicts.right_pct"};
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return metric.starts_with(prefix); });
}

bool isOfTimeAfterFaults(std::string_view metric) {
  return metric.starts_with("after_pct.") || metric.starts_with("back_to_95_pct_ms.");
}

/// Whether it is of each event of this kind, and not their number.
bool isOfEvents(std::string_view metric, std::string_view events) {
  return metric.starts_with(events) && metric != std::string(events) + "count";
}

/// Times that a strike of the fault breaks something; kNoLimit: as often as there is time.
std::int64_t lossesOf(const Fault& fault) {
  constexpr const char* kPeriod = "period";
  const Parameters& parameters = fault.parameters;
  if (!parameters.has(kPeriod)) return 1;
  const auto count = parameters.has("count") ? parameters.get<std::int64_t>("count") : 0;
  if (count > 0) return count;
  const auto period = parameters.get<Duration>(kPeriod);
  if (!fault.duration || period <= Duration::zero()) return kNoLimit;
  return *fault.duration / period + 1;
}

/// The most failovers that one loss can lead to, each end of each connection counted.
std::int64_t failoversOfALoss(const Fault& fault, const Cluster& cluster) {
  const std::int64_t ranks = cluster.ranks();
  const bool one = fault.target && fault.target->part == Part::kRail;
  const std::int64_t there = cluster.ranksPerNode;
  return one ? 2 * there * (ranks - there) : ranks * (ranks - 1) * cluster.rails;
}

/// The most failovers of one run that faults can explain; kNoLimit: nobody knows.
std::int64_t mostFailovers(const Scenario& scenario) {
  if (!scenario.processes.empty()) return kNoLimit;
  std::int64_t sum = 0;
  bool known = true;
  const auto add = [&](const Fault& fault, std::int64_t times) {
    const std::int64_t losses = lossesOf(fault);
    known = known && losses != kNoLimit;
    if (known) sum += losses * times * failoversOfALoss(fault, scenario.cluster);
  };
  for (const Fault& fault : scenario.faults) add(fault, fault.times);
  for (const Sequence& sequence : scenario.sequences) {
    for (const Fault& fault : sequence.faults) add(fault, sequence.repeat);
  }
  return known ? sum : kNoLimit;
}

std::string tooFew(std::string_view metric, std::string_view what, std::int64_t most,
                   std::size_t needed) {
  return fmt::format(
      "{} needs {} {}, and there can be {} at most: raise 'repeat', or what is done "
      "in a run, or look at a lower percentile or the max",
      metric, needed, what, most);
}

std::optional<std::size_t> samplesFor(std::string_view metric) {
  if (metric.ends_with(".p95") || metric.starts_with("ttft_p95_") ||
      metric.starts_with("tpot_p95_")) {
    return stats::kMinSamplesForP95;
  }
  if (metric.ends_with(".p99")) return stats::kMinSamplesForP99;
  return std::nullopt;
}

std::string whyTooFewSamples(const MetricName& name, const Scenario& scenario) {
  const std::string_view metric = name.metric;
  const std::optional<std::size_t> needed = samplesFor(metric);
  if (!needed) return "";
  if (metric.starts_with("failover_pause_ms.")) {
    // One that no fault explains happens now and then: twice as many are not ruled out.
    constexpr std::int64_t kUnexplained = 2;
    const std::int64_t of_a_run = mostFailovers(scenario);
    if (of_a_run == kNoLimit) return "";
    const std::int64_t most = of_a_run * scenario.repeat;
    if (most * kUnexplained >= static_cast<std::int64_t>(*needed)) return "";
    return tooFew(metric, "failovers", most, *needed);
  }
  if (!isOfRequests(metric) || !scenario.workload.serving) return "";
  const inference::Serving& serving = *scenario.workload.serving;
  const bool traced = !serving.traceFile.empty();
  const std::int64_t of_a_rate =
      traced ? std::ssize(serving.trace.requests) : static_cast<std::int64_t>(serving.requests);
  const bool of_each_rate = metric.find("_overhead_pct") != std::string_view::npos;
  const std::int64_t rates = traced || of_each_rate ? 1 : std::ssize(serving.qps);
  const std::int64_t most = of_a_rate * rates * scenario.repeat;
  if (most >= static_cast<std::int64_t>(*needed)) return "";
  return tooFew(metric, of_each_rate ? "requests of a rate" : "requests", most, *needed);
}

std::string whyNoEvent(const MetricName& name, const Row& row, const Scenario& scenario) {
  const std::string_view metric = name.metric;
  const std::string_view kind = row.kind.name;
  if (isOfFailovers(metric) && !failsOver(row.kind)) {
    return row.kind.meetsFaults
               ? fmt::format("{}: {} has no failovers, it stops", metric, kind)
               : fmt::format("{}: {} meets no fault, so that nothing fails over", metric, kind);
  }
  if (isOfEvents(metric, "restarts.") && !row.kind.restarts) {
    return fmt::format("{}: only {} is killed and started again", metric,
                       baseline::namesOf([](const StrategySpec& one) { return one.restarts; }));
  }
  const bool foreign = !scenario.workload.kind->runsRanks;
  if (isOfEvents(metric, kShrinkMetrics) && !foreign && !row.kind.losesRanks) {
    return fmt::format("{}: only {} go on with fewer ranks", metric,
                       baseline::namesOf([](const StrategySpec& one) { return one.losesRanks; }));
  }
  if (isOfEvents(metric, "exclusions.") && !row.kind.leavesRanksOut) {
    return fmt::format(
        "{}: only {} leaves ranks out", metric,
        baseline::namesOf([](const StrategySpec& one) { return one.leavesRanksOut; }));
  }
  const bool afterwards = isOfTimeAfterFaults(metric);
  const bool ofFaults = afterwards || isOfFailovers(metric) || metric == "errors.after_ms" ||
                        isOfEvents(metric, "restarts.") || isOfEvents(metric, kShrinkMetrics) ||
                        isOfEvents(metric, kRebuildMetrics) || isOfEvents(metric, "exclusions.");
  if (!ofFaults) return "";
  if (!scenario.hasFaults()) return fmt::format("{}: the scenario has no faults", metric);
  if (!row.kind.meetsFaults) return fmt::format("{}: {} meets no fault", metric, kind);
  // Who is started again is repaired before, which ends such faults.
  if (afterwards && !row.kind.restarts) {
    for (const Fault& fault : allFaults(scenario)) {
      if (fault.duration) continue;
      return fmt::format(
          "{}: {} lasts until the end of the run, so that nothing comes after it: give it a "
          "'duration'",
          metric, fault.kind);
    }
  }
  return "";
}

std::string whyNoCell(const MetricName& name, const Row& row, const Scenario& scenario) {
  const std::string_view metric = name.metric;
  if (!metric.starts_with(kCellMetrics) || !scenario.workload.kind->hasCells) return "";
  const std::vector<SweepCell> cells = cellsOf(scenario.workload.collective);
  const bool large = metric.starts_with("cells.large.");
  const bool reduced = metric.find(".all_reduce.") != std::string_view::npos;
  const bool any = std::ranges::any_of(cells, [&](const SweepCell& cell) {
    return (!large || bytesOf(cell, scenario.cluster.ranks()) >= kLargeCell) &&
           (!reduced || cell.operation == schedule::Collective::kAllReduce);
  });
  if (!any) {
    return fmt::format("{}: no {}call of the sweep has at least 8 MiB", metric,
                       reduced ? "all_reduce " : "");
  }
  if (metric.ends_with("time_over_best")) {
    const bool rival = std::ranges::any_of(scenario.strategies, [&](const Strategy& other) {
      const StrategySpec* const kind = baseline::findStrategy(other.kind());
      return kind != nullptr && !kind->modelled() && kind->meetsFaults &&
             kind->plannedBy != baseline::kAnyAlgorithm && other.name != name.strategy;
    });
    if (!rival) {
      return fmt::format("{}: no other strategy of the scenario meets faults with one algorithm",
                         metric);
    }
  }
  const bool ofR2 = metric.ends_with("time_over_formula");
  if (ofR2 && row.kind.plannedBy != kWithFormula && row.kind.plannedBy != baseline::kAnyAlgorithm) {
    return fmt::format("{}: the formula is of {}, and {} runs another algorithm", metric,
                       kWithFormula, name.strategy);
  }
  if (metric.ends_with("busbw_kept_pct") &&
      scenario.find(std::string(baseline::kReferenceRow)) == nullptr) {
    return fmt::format("{} is measured against {}: add it to 'strategies'", metric,
                       baseline::kReferenceRow);
  }
  return "";
}

}  // namespace

std::string whyNeverAValue(const MetricName& name, const Scenario& scenario) {
  if (const auto row = rowOf(name, scenario)) {
    if (std::string why = whyNoEvent(name, *row, scenario); !why.empty()) return why;
    if (std::string why = whyNoCell(name, *row, scenario); !why.empty()) return why;
  }
  return whyTooFewSamples(name, scenario);
}

}  // namespace faultline::scenario

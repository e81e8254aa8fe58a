#include "harness/analysis/speed_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "base/units.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/bound_model.h"
#include "harness/baseline/strategy_table.h"
#include "harness/record/goodput.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/quantile.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "injector/netlink/shaper_plan.h"

namespace faultline::run {
namespace {

using baseline::RailDamage;

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kKilo = 1000;
// Measured: with less than this a port seems to be faster than it is, as it begins with a full
// bucket.
constexpr double kLeastBursts = 20;

/// What a node sends per iteration and rail: AllReduce moves every byte out of each node, but for
/// what it has reduced itself, twice.
double bytesPerPort(const scenario::Scenario& scenario) {
  const double nodes = scenario.cluster.nodes;
  return 2 * (nodes - 1) / nodes * static_cast<double>(scenario.workload.gradient.size) /
         scenario.cluster.rails;
}

/// Why there is no model of this training job's iterations; empty: there is one.
std::string whyNoModel(const std::optional<model::Training>& training) {
  if (!training) return "";
  if (!training->onlyCopies()) {
    return "no best possible: there is a model only of plain data parallelism, without ZeRO";
  }
  if (training->layersPerStage() % training->buckets == 0) return "";
  return fmt::format(
      "no best possible: there is a model only of buckets that are ready at equal distances, and "
      "{} "
      "buckets do not divide {} layers",
      training->buckets, training->layersPerStage());
}

/// A fault-free run as a model, and how long it took.
struct Reference {
  baseline::JobModel job;
  double totalMs = 0;
};

std::optional<Reference> referenceOf(const scenario::Scenario& scenario, const reports::Run& run) {
  std::vector<double> times;
  std::vector<double> gaps;
  double total = 0;
  const reports::Iteration* previous = nullptr;
  for (const reports::Iteration& iteration : run.iterations) {
    times.push_back(iteration.ms);
    total += iteration.ms;
    if (previous != nullptr) {
      gaps.push_back(std::max(0.0, iteration.start_ms - previous->start_ms - previous->ms));
    }
    previous = &iteration;
  }
  const auto time = stats::median(times);
  if (!time || !(total > 0)) return std::nullopt;
  const int buckets = std::max(1, scenario.workload.gradient.buckets);
  const std::optional<model::Training>& training = scenario.workload.model;
  baseline::IterationModel iteration =
      baseline::fitIteration(toMilliseconds(scenario.workload.compute.duration), buckets, *time,
                             training ? model::readyFrom(*training) : baseline::kForwardShare);
  const double wire = bytesPerPort(scenario) / payloadPerMs(scenario.cluster.railRate, 1) / buckets;
  iteration.wireShare = iteration.bucketMs > 0 ? std::min(1.0, wire / iteration.bucketMs) : 0;
  return Reference{{.nodes = scenario.cluster.nodes,
                    .rails = scenario.cluster.rails,
                    .iterations = scenario.workload.iterations,
                    .iteration = iteration,
                    .gapMs = stats::median(gaps).value_or(0)},
                   total};
}

/// Where the fault was in the measured run: so long after the beginning of the last iteration that
/// had begun, in whose wake it may lie (a hung iteration is not in the table).
RailDamage placed(const reports::Run& run, const reports::AppliedFault& fault,
                  const scenario::Target& target) {
  RailDamage damage;
  damage.node = target.node;
  damage.rail = target.rail;
  const reports::Iteration* last = nullptr;
  for (const reports::Iteration& iteration : run.iterations) {
    const bool begun = iteration.start_ms <= fault.start_ms;
    if (begun && (last == nullptr || iteration.start_ms >= last->start_ms)) last = &iteration;
  }
  if (last != nullptr) {
    damage.iteration = last->index;
    damage.offsetMs = fault.start_ms - last->start_ms;
  }
  damage.durationMs = fault.end_ms ? std::max(0.0, *fault.end_ms - fault.start_ms) : kForever;
  return damage;
}

/// Adds what one fault takes away; false when nobody knows it.
bool addDamages(const scenario::Scenario& scenario, const reports::Run& run,
                const reports::AppliedFault& fault, const scenario::Fault& spec,
                std::vector<RailDamage>& damages) {
  const injector::FaultKind* const kind = injector::findFaultKind(spec.kind);
  if (kind == nullptr) return false;
  if (spec.target && spec.target->part == scenario::Part::kManagement) return true;  // of no rail
  if (kind->damage == nullptr) return false;
  const RailDamage whole = placed(run, fault, spec.target.value_or(scenario::Target{}));
  const double longest =
      std::min(whole.durationMs, std::max(0.0, run.duration_ms - fault.start_ms));
  const std::vector<injector::LinkLoss> losses =
      kind->damage(spec.parameters, scenario.cluster.railRate,
                   duration_cast<Duration>(std::chrono::duration<double, std::milli>(longest)));
  if (!losses.empty() && !spec.target) return false;  // of which link?
  for (const injector::LinkLoss& loss : losses) {
    RailDamage& damage = damages.emplace_back(whole);
    damage.lostTx = loss.tx;
    damage.lostRx = loss.rx;
    damage.offsetMs += toMilliseconds(loss.begin);
    if (loss.length) damage.durationMs = toMilliseconds(*loss.length);
  }
  return true;
}

bool isTargetOf(const scenario::Fault& spec, const reports::AppliedFault& fault) {
  if (!spec.target) return true;
  const bool of_rail = spec.target->part == scenario::Part::kRail;
  return fault.target.node == spec.target->node &&
         fault.target.rail == (of_rail ? std::optional(spec.target->rail) : std::nullopt);
}

/// The scenario's fault that was applied: of its kind and target, the first one that was not
/// `taken` as often as it strikes.
const scenario::Fault* specOf(std::span<const scenario::Fault> faults,
                              const reports::AppliedFault& fault, std::vector<int>& taken) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const scenario::Fault& spec = faults[i];
    if (taken[i] == spec.times || spec.kind != fault.kind || !isTargetOf(spec, fault)) continue;
    ++taken[i];
    return &spec;
  }
  return nullptr;
}

/// Calls f(applied fault, its spec, its damages) for all faults; false when there is no model of
/// one.
template <typename F>
bool forDamages(const scenario::Scenario& scenario, const reports::Run& run, F f) {
  const std::vector<scenario::Fault> faults = scenario::allFaults(scenario);
  std::vector<int> taken(faults.size());
  for (const reports::AppliedFault& fault : run.faults) {
    const scenario::Fault* const spec = specOf(faults, fault, taken);
    std::vector<RailDamage> damages;
    if (spec == nullptr || !addDamages(scenario, run, fault, *spec, damages)) return false;
    f(fault, *spec, damages);
  }
  return true;
}

std::optional<double> boundOf(const scenario::Scenario& scenario, const Reference& reference,
                              const reports::Run& run) {
  std::vector<RailDamage> damages;
  const bool known = forDamages(scenario, run, [&](const auto&, const auto&, const auto& its) {
    damages.insert(damages.end(), its.begin(), its.end());
  });
  if (!known) return std::nullopt;
  const auto extra = baseline::leastExtraMs(reference.job, damages);
  if (!extra) return std::nullopt;
  return kWholeInPercent * *extra / reference.totalMs;
}

}  // namespace

std::optional<std::vector<PortLoss>> lossesOf(const scenario::Scenario& scenario,
                                              const reports::Run& run) {
  std::vector<PortLoss> losses;
  const bool known = forDamages(
      scenario, run,
      [&](const reports::AppliedFault& fault, const scenario::Fault& spec, const auto& damages) {
        for (const RailDamage& damage : damages) {
          const double start =
              fault.start_ms + damage.offsetMs - placed(run, fault, *spec.target).offsetMs;
          losses.push_back({.node = damage.node,
                            .rail = damage.rail,
                            .tx = damage.lostTx,
                            .rx = damage.lostRx,
                            .start_ms = start,
                            .end_ms = start + damage.durationMs});
        }
      });
  if (!known) return std::nullopt;
  return losses;
}

double burstShare(const scenario::Scenario& scenario, double bytesPerPort) {
  if (!(bytesPerPort > 0)) return 1;
  const auto burst = static_cast<double>(netlink::planShaper(scenario.cluster.railRate).bulk.burst);
  return std::min(1.0, burst / bytesPerPort);
}

bool mostlyBurst(const scenario::Scenario& scenario, double bytesPerPort) {
  return burstShare(scenario, bytesPerPort) * kLeastBursts > 1;
}

bool completed(const reports::Run& run) {
  return run.status == reports::RunStatus::kOk ||
         (run.status == reports::RunStatus::kHung && !run.restarts.empty());
}

bool comparable(const reports::Run& run) { return completed(run) && run.void_because.empty(); }

bool didAllWork(const reports::Run& run) {
  return completed(run) || (run.status == reports::RunStatus::kInvalid && run.throughput);
}

std::optional<double> boundPercent(const scenario::Scenario& scenario,
                                   std::span<const reports::Run> runs,
                                   const std::string& strategy) {
  if (strategy == baseline::kReferenceRow || !scenario.workload.kind->hasBound) {
    return std::nullopt;
  }
  if (scenario.workload.time) return std::nullopt;  // runs of different work
  if (!whyNoBound(scenario, runs, strategy).empty()) return std::nullopt;
  std::vector<double> bounds;
  for (const reports::Run& run : runs) {
    if (run.strategy != strategy || !comparable(run)) continue;
    const reports::Run* const free = findRun(runs, std::string(baseline::kReferenceRow), run.block);
    if (free == nullptr || !comparable(*free)) continue;
    const auto reference = referenceOf(scenario, *free);
    if (!reference) continue;
    const auto bound = boundOf(scenario, *reference, run);
    if (!bound) return std::nullopt;
    bounds.push_back(*bound);
  }
  return stats::median(bounds);
}

std::string whyNoBound(const scenario::Scenario& scenario, std::span<const reports::Run> runs,
                       const std::string& strategy) {
  const bool met = std::ranges::any_of(runs, [&](const reports::Run& run) {
    return run.strategy == strategy && !run.faults.empty();
  });
  if (!met) return "";
  const scenario::WorkloadKind& kind = *scenario.workload.kind;
  if (!kind.hasBound) return std::string(kind.whyNoBound);
  if (std::string why = whyNoModel(scenario.workload.model); !why.empty()) return why;
  const auto burst = static_cast<double>(netlink::planShaper(scenario.cluster.railRate).bulk.burst);
  const double bytes = bytesPerPort(scenario);
  if (!mostlyBurst(scenario, bytes)) return "";
  return fmt::format(
      "no best possible: an iteration sends only {:.0f} kB through each port, which lets {:.0f} kB "
      "pass at any speed after a pause; from {:.0f} kB on its rate means something",
      bytes / kKilo, burst / kKilo, kLeastBursts * burst / kKilo);
}

bool betterThanPossible(const reports::Summary& row, const std::optional<reports::Noise>& noise) {
  if (!row.overhead_pct || !row.bound_pct) return false;
  const auto time = [](double percent) { return 1 + percent / kWholeInPercent; };
  const double tolerance =
      std::max(kBoundTolerance, noise ? noise->median_band_pct / kWholeInPercent : 0);
  return time(row.overhead_pct->median) < time(*row.bound_pct) * (1 - tolerance);
}

}  // namespace faultline::run

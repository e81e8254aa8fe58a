#include "harness/run/bound.h"

#include <algorithm>
#include <limits>
#include <variant>
#include <vector>

#include "harness/baseline/bound_model.h"
#include "harness/baseline/strategy_table.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using baseline::RailDamage;

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kPercent = 100;

std::optional<baseline::JobModel> jobModel(const scenario::Scenario& scenario,
                                           std::span<const reports::Run> runs) {
  if (scenario.workload.kind != "training") return std::nullopt;
  std::vector<double> times;
  std::vector<double> gaps;
  for (const reports::Run& run : runs) {
    if (run.strategy != baseline::kFaultFree || !completed(run)) continue;
    const reports::Iteration* previous = nullptr;
    for (const reports::Iteration& iteration : run.iterations) {
      times.push_back(iteration.ms);
      if (previous != nullptr) {
        gaps.push_back(std::max(0.0, iteration.start_ms - previous->start_ms - previous->ms));
      }
      previous = &iteration;
    }
  }
  const auto time = stats::median(times);
  if (!time) return std::nullopt;
  return baseline::JobModel{
      .nodes = scenario.cluster.nodes,
      .rails = scenario.cluster.rails,
      .iterations = scenario.workload.iterations,
      .iteration = baseline::fitIteration(toMilliseconds(scenario.workload.compute.duration),
                                          std::max(1, scenario.workload.gradient.buckets), *time),
      .gapMs = stats::median(gaps).value_or(0)};
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

double lostByThrottle(const scenario::Fault& spec, BitsPerSecond rail_rate) {
  const ParameterValue& left = spec.parameters.value("rate");
  double share = 1;
  if (const auto* percent = std::get_if<Percent>(&left)) share = percent->value / kPercent;
  if (const auto* rate = std::get_if<Rate>(&left); rate != nullptr && rail_rate > 0) {
    share = static_cast<double>(rate->bitsPerSecond) / static_cast<double>(rail_rate);
  }
  return std::clamp(1 - share, 0.0, 1.0);
}

/// Every loss of the port: the first when the fault is applied, one more per period.
void addFlaps(const scenario::Fault& spec, const RailDamage& whole, double longest_ms,
              std::vector<RailDamage>& damages) {
  const double period = toMilliseconds(spec.parameters.get<Duration>("period"));
  const double down = period * spec.parameters.get<Percent>("duty").value / kPercent;
  const auto count = spec.parameters.get<std::int64_t>("count");
  const double end = std::min(whole.durationMs, longest_ms);
  double begin = 0;
  for (std::int64_t i = 0; begin < end && (count == 0 || i < count); begin = period * ++i) {
    RailDamage& damage = damages.emplace_back(whole);
    damage.offsetMs += begin;
    damage.durationMs = std::min(down, end - begin);
  }
}

/// Adds what one fault takes away; false when the model does not know this kind.
bool addDamages(const scenario::Scenario& scenario, const reports::Run& run,
                const reports::AppliedFault& fault, const scenario::Fault& spec,
                std::vector<RailDamage>& damages) {
  if (spec.kind == "none") return true;
  if (!spec.target) return false;
  if (spec.target->part == scenario::Part::kManagement) return true;  // takes no bandwidth away
  RailDamage damage = placed(run, fault, *spec.target);
  if (spec.kind == "connection_reset") return true;  // a moment: the link stays whole
  if (spec.kind == "port_down" || spec.kind == "blackhole") {
    damages.push_back(damage);
  } else if (spec.kind == "one_way_loss") {
    const bool out = spec.parameters.get<std::string>("direction") == "out";
    damage.lostTx = out ? 1 : 0;
    damage.lostRx = out ? 0 : 1;
    damages.push_back(damage);
  } else if (spec.kind == "port_flap") {
    addFlaps(spec, damage, std::max(0.0, run.duration_ms - fault.start_ms), damages);
  } else if (spec.kind == "throttle") {
    const double lost = lostByThrottle(spec, scenario.cluster.railRate);
    const auto& direction = spec.parameters.get<std::string>("direction");
    damage.lostTx = direction == "rx" ? 0 : lost;
    damage.lostRx = direction == "tx" ? 0 : lost;
    damages.push_back(damage);
  } else {
    return false;
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
const scenario::Fault* specOf(const scenario::Scenario& scenario,
                              const reports::AppliedFault& fault, std::vector<int>& taken) {
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const scenario::Fault& spec = scenario.faults[i];
    if (taken[i] == spec.times || spec.kind != fault.kind || !isTargetOf(spec, fault)) continue;
    ++taken[i];
    return &spec;
  }
  return nullptr;
}

std::optional<double> boundOf(const scenario::Scenario& scenario, const baseline::JobModel& job,
                              const reports::Run& run) {
  std::vector<RailDamage> damages;
  std::vector<int> taken(scenario.faults.size());
  for (const reports::AppliedFault& fault : run.faults) {
    const scenario::Fault* const spec = specOf(scenario, fault, taken);
    if (spec == nullptr || !addDamages(scenario, run, fault, *spec, damages)) return std::nullopt;
  }
  return baseline::boundOverheadPercent(job, damages);
}

}  // namespace

bool completed(const reports::Run& run) {
  return run.status == reports::RunStatus::kOk ||
         (run.status == reports::RunStatus::kHung && !run.restarts.empty());
}

bool didAllWork(const reports::Run& run) {
  return completed(run) || (run.status == reports::RunStatus::kInvalid && run.throughput);
}

std::optional<double> boundPercent(const scenario::Scenario& scenario,
                                   std::span<const reports::Run> runs,
                                   const std::string& strategy) {
  if (strategy == baseline::kFaultFree) return std::nullopt;
  const auto job = jobModel(scenario, runs);
  if (!job) return std::nullopt;
  std::vector<double> bounds;
  for (const reports::Run& run : runs) {
    if (run.strategy != strategy || !completed(run)) continue;
    const auto bound = boundOf(scenario, *job, run);
    if (!bound) return std::nullopt;
    bounds.push_back(*bound);
  }
  return stats::median(bounds);
}

}  // namespace faultline::run

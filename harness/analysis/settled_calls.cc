#include "harness/analysis/settled_calls.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "harness/analysis/ports_left.h"
#include "harness/analysis/speed_bound.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "resilient_ccl/plan/planner.h"

namespace faultline::run {
namespace {

/// Health is told as shares of the job's fastest port.
bool fits(const reports::AppliedPlan& plan, const schedule::PortBandwidths& left,
          int ranks_per_node) {
  const double fastest =
      std::max(*std::ranges::max_element(left.send), *std::ranges::max_element(left.receive));
  if (plan.health.size() != left.send.size() * static_cast<std::size_t>(ranks_per_node)) {
    return false;
  }
  for (std::size_t rank = 0; rank < plan.health.size(); ++rank) {
    const std::size_t node = rank / static_cast<std::size_t>(ranks_per_node);
    const reports::PortHealth& health = plan.health[rank];
    if (std::abs(health.send - left.send[node] / fastest) > kHealthTolerance ||
        std::abs(health.receive - left.receive[node] / fastest) > kHealthTolerance) {
      return false;
    }
  }
  return true;
}

/// Whether the ranks did it in another way later: by another algorithm, or along a chain in which
/// another order may be better. Most have one way, whatever the ports, and nothing to wait for.
bool isReplaced(const reports::Run& run, const reports::AppliedPlan& plan) {
  const bool chain = plan.algorithm.starts_with("chain_");
  const auto differs = [](const reports::PortHealth& a, const reports::PortHealth& b) {
    return std::abs(a.send - b.send) > kHealthTolerance ||
           std::abs(a.receive - b.receive) > kHealthTolerance;
  };
  return std::ranges::any_of(run.plans, [&](const reports::AppliedPlan& later) {
    if (later.collective != plan.collective || later.elements != plan.elements ||
        later.bytes != plan.bytes || later.at_ms <= plan.at_ms) {
      return false;
    }
    return later.algorithm != plan.algorithm ||
           (chain && !std::ranges::equal(later.health, plan.health, std::not_fn(differs)));
  });
}

}  // namespace

const reports::AppliedPlan* planInUse(const reports::Run& run, schedule::Collective operation,
                                      std::int64_t elements, std::int64_t bytes, double end_ms) {
  const reports::AppliedPlan* latest = nullptr;
  for (const reports::AppliedPlan& plan : run.plans) {
    if (plan.collective != schedule::collectiveName(operation) || plan.elements != elements ||
        plan.bytes != bytes || plan.at_ms > end_ms) {
      continue;
    }
    if (latest == nullptr || plan.at_ms >= latest->at_ms) latest = &plan;
  }
  return latest;
}

std::set<int> unsettledCalls(const scenario::Scenario& scenario, const reports::Run& run) {
  std::set<int> unsettled;
  const baseline::StrategySpec* const strategy = baseline::findStrategy(reports::kindOf(run));
  if (strategy == nullptr || !strategy->planned() || !scenario.workload.kind->hasCells)
    return unsettled;
  const std::vector<scenario::SweepCell> cells = cellsOf(scenario.workload.collective);
  const auto losses = lossesOf(scenario, run);
  const int ranks = scenario.cluster.ranks();
  for (const reports::Iteration& call : run.iterations) {
    const auto index = static_cast<std::size_t>(call.index / scenario.workload.iterations);
    if (index >= cells.size()) continue;
    const scenario::SweepCell& cell = cells[index];
    if (!plan::plannable(cell.operation)) continue;
    const double end = call.start_ms + call.ms;
    // As plans count them: the data of a rank.
    const std::int64_t bytes = bytesOf(cell, ranks);
    const std::int64_t elements = bytes / reduction::sizeOf(cell.dtype);
    const auto* plan = planInUse(run, cell.operation, elements, bytes, end);
    if (cell.operation != schedule::Collective::kAllReduce) {
      if (plan != nullptr && isReplaced(run, *plan)) unsettled.insert(call.index);
      continue;
    }
    bool settled = plan != nullptr && !plan->tried && plan->at_ms < call.start_ms;
    if (settled && losses) {
      const auto left = portsLeft(call.start_ms, end, *losses, scenario.cluster);
      settled = left && fits(*plan, *left, scenario.cluster.ranksPerNode);
    }
    if (!settled) unsettled.insert(call.index);
  }
  return unsettled;
}

std::set<int> struckCalls(const reports::Run& run) {
  std::set<int> struck;
  const auto look = [&](const reports::Iteration& call) {
    const bool met = std::ranges::any_of(run.faults, [&](const reports::AppliedFault& fault) {
      return fault.start_ms < call.start_ms + call.ms &&
             fault.end_ms.value_or(std::numeric_limits<double>::infinity()) > call.start_ms;
    });
    if (met) struck.insert(call.index);
  };
  for (const reports::Iteration& call : run.iterations) look(call);
  if (run.unfinished) look(*run.unfinished);
  return struck;
}

CallFates fatesOf(const scenario::Scenario& scenario, const reports::Run& run) {
  return {.unsettled = unsettledCalls(scenario, run), .struck = struckCalls(run)};
}

CountedCalls countedOf(const std::vector<int>& calls, const CallFates& fates) {
  CountedCalls counted;
  const auto isStruck = [&](int call) { return fates.struck.contains(call); };
  std::vector<int> met;
  std::ranges::copy_if(calls, std::back_inserter(met), isStruck);
  const bool some = !met.empty() && met.size() < calls.size();
  const bool stays = !some || isStruck(calls.back());
  counted.untouched = some ? static_cast<int>(calls.size() - met.size()) : 0;
  counted.calls = some ? met : calls;
  if (stays) {
    std::vector<int> settled;
    std::ranges::copy_if(counted.calls, std::back_inserter(settled),
                         [&](int call) { return !fates.unsettled.contains(call); });
    counted.unsettled = settled.empty() && !calls.empty();
    if (!settled.empty()) {
      counted.leftOut = static_cast<int>(counted.calls.size() - settled.size());
      counted.calls = std::move(settled);
    }
  }
  counted.struck = static_cast<int>(std::ranges::count_if(counted.calls, isStruck));
  return counted;
}

}  // namespace faultline::run

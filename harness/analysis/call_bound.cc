#include "harness/analysis/call_bound.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "harness/analysis/ports_left.h"
#include "harness/analysis/settled_calls.h"
#include "harness/analysis/speed_bound.h"
#include "harness/baseline/strategy_table.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/plan/planner.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/r2_formula.h"

namespace faultline::run {
namespace {

using schedule::Collective;
using schedule::PortBandwidths;

/// The algorithm that has a formula of its authors.
constexpr std::string_view kR2AllReduce = "r2_allreduce";

/// The bandwidths of the calls; nullopt when they changed, or nothing is left of a node. Without
/// the first one, which may be hit by what strikes, unless calls were left out already.
std::optional<PortBandwidths> bandwidthsOf(std::span<const reports::Iteration> calls,
                                           bool withoutFirst, std::span<const PortLoss> losses,
                                           const scenario::Cluster& cluster) {
  if (withoutFirst && calls.size() > 1) calls = calls.subspan(1);
  if (calls.empty()) return std::nullopt;
  return portsLeft(calls.front().start_ms, calls.back().start_ms + calls.back().ms, losses,
                   cluster);
}

/// What the ranks run, for the calls of a row of which the last one ended at `end_ms`; nullopt when
/// nobody has told.
struct Executed {
  std::string_view algorithm;
  schedule::ScheduleRequest request;
};
std::optional<Executed> executedBy(const reports::Run& run, const reports::CollectiveRow& row,
                                   Collective operation, const scenario::Cluster& cluster,
                                   double end_ms) {
  constexpr int kSegments = 2;  // RankConfig::segments
  // A chain passes on slice by slice, and the model whole segments.
  const bool chain = operation == Collective::kBroadcast || operation == Collective::kReduce;
  const auto slices = static_cast<int>(row.size_bytes / comm::Executor::kSliceBytes);
  // No window: ports of the model queue nothing (algorithms.h), and it is the planner's prediction.
  Executed executed{
      schedule::algorithmOf(operation).name,
      {.ranks = cluster.ranks(),
       .elements = row.size_bytes / reduction::sizeOf(*reduction::dataTypeFromName(row.dtype)),
       .segments = chain ? std::max(kSegments, slices) : kSegments,
       .ranksPerNode = cluster.ranksPerNode}};
  const baseline::StrategySpec* const strategy = baseline::findStrategy(reports::kindOf(run));
  const bool planned = strategy != nullptr && strategy->planned();
  if (strategy == nullptr || !strategy->sharesLoad || strategy->written) return std::nullopt;
  if (!planned || !plan::plannable(operation)) return executed;
  const auto* plan = planInUse(run, operation, executed.request.elements, row.size_bytes, end_ms);
  if (plan == nullptr) return std::nullopt;
  executed.algorithm = plan->algorithm;
  if (!chain) executed.request.segments = plan->segments;
  for (const reports::PortHealth& port : plan->health) {
    executed.request.bandwidths.send.push_back(port.send);
    executed.request.bandwidths.receive.push_back(port.receive);
  }
  return executed;
}

/// Of ranks that share the ports of their nodes.
PortBandwidths ofRanks(const PortBandwidths& nodes, int ranksPerNode) {
  PortBandwidths ranks;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    ranks.send.insert(ranks.send.end(), ranksPerNode, nodes.send[node]);
    ranks.receive.insert(ranks.receive.end(), ranksPerNode, nodes.receive[node]);
  }
  return ranks;
}

/// The schedule of a strategy, as the ranks run it, where the model knows it: one that lets each
/// rail carry what it can. `left` of the nodes.
std::optional<double> modelOf(const std::optional<Executed>& executed, const PortBandwidths& left) {
  if (!executed) return std::nullopt;
  const auto schedule = schedule::makeSchedule(executed->algorithm, executed->request);
  if (!schedule.ok()) return std::nullopt;
  const int ranksPerNode = executed->request.ranksPerNode;
  const auto cost =
      schedule::costOf(**schedule, ofRanks(left, ranksPerNode), {.ranksPerNode = ranksPerNode});
  if (!cost.ok()) return std::nullopt;
  return cost->timeOverRing;
}

void compare(const scenario::Scenario& scenario, const reports::Run& run,
             std::span<const reports::Iteration> calls, std::span<const PortLoss> losses,
             reports::CollectiveRow& row) {
  const scenario::Cluster& cluster = scenario.cluster;
  const Collective operation = *schedule::collectiveFromName(row.operation);
  const double busy = schedule::faultFreeTime(operation, cluster.ranks(), cluster.ranksPerNode);
  const double bytes = busy * static_cast<double>(row.size_bytes) / cluster.rails;  // of a port
  row.latency_only = mostlyBurst(scenario, bytes);
  constexpr double kBitsPerByte = 8;
  constexpr double kBitsPerMsOfMbit = 1000;
  if (run.goodput_mbit && *run.goodput_mbit > 0 && bytes > 0) {
    row.ideal_ms = bytes * kBitsPerByte / (*run.goodput_mbit * kBitsPerMsOfMbit);
    row.time_over_ideal = row.p50_ms / *row.ideal_ms;
  }
  const auto left = bandwidthsOf(calls, row.left_out == 0, losses, cluster);
  if (!left) return;
  const bool servers = cluster.ranksPerNode > 1;
  if (servers && cluster.nodes < 2) return;  // which has no ports in use
  row.send = left->send;
  row.receive = left->receive;
  if (busy > 0) {
    row.bound =
        schedule::lowerBound(operation, *left, schedule::PortModel::kFluid, cluster.ranksPerNode) /
        busy;
    row.least = *row.bound * (1 - burstShare(scenario, bytes));
  }
  const double end = calls.back().start_ms + calls.back().ms;
  const auto executed = executedBy(run, row, operation, cluster, end);
  row.model = modelOf(executed, *left);
  if (executed && executed->algorithm == kR2AllReduce && !servers) {
    if (const auto formula = schedule::r2Formula(executed->request, *left)) {
      row.formula = formula->timeOverRing;
      row.formula_chunks = formula->chunks;
    }
  }
  if (!row.time_over_ideal) return;
  if (row.bound) row.time_over_bound = *row.time_over_ideal / *row.bound;
  if (row.model) row.time_over_model = *row.time_over_ideal / *row.model;
  if (row.formula) row.time_over_formula = *row.time_over_ideal / *row.formula;
  row.mis_measured =
      !row.latency_only && row.least && *row.time_over_ideal < *row.least * (1 - kBoundTolerance);
}

}  // namespace

void compareWithModels(const scenario::Scenario& scenario, reports::Run& run) {
  if (run.collectives.empty()) return;
  const auto losses = lossesOf(scenario, run);
  if (!losses) return;
  // A row without one whole call is missing: find the rows' iterations by their cells.
  const std::vector<scenario::SweepCell> cells = cellsOf(scenario.workload.collective);
  const CallFates fates = fatesOf(scenario, run);
  auto row = run.collectives.begin();
  for (int cell = 0; cell < std::ssize(cells) && row != run.collectives.end(); ++cell) {
    std::vector<reports::Iteration> calls;
    for (const reports::Iteration& iteration : run.iterations) {
      if (iteration.index / scenario.workload.iterations == cell) calls.push_back(iteration);
    }
    if (calls.empty()) continue;
    std::vector<int> indices;
    for (const reports::Iteration& call : calls) indices.push_back(call.index);
    const std::vector<int> counted = countedOf(indices, fates).calls;
    std::erase_if(
        calls, [&](const auto& call) { return !std::ranges::binary_search(counted, call.index); });
    compare(scenario, run, calls, *losses, *row++);
  }
}

}  // namespace faultline::run

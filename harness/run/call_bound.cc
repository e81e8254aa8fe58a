#include "harness/run/call_bound.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "harness/baseline/strategy_table.h"
#include "harness/run/bound.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"

namespace faultline::run {
namespace {

using schedule::Collective;
using schedule::PortBandwidths;

/// What of the nodes' ports is left at a moment, 1 = everything.
PortBandwidths leftAt(double ms, std::span<const PortLoss> losses,
                      const scenario::Cluster& cluster) {
  const std::vector<double> whole(cluster.nodes, 1.0);
  PortBandwidths left(whole);
  for (int node = 0; node < cluster.nodes; ++node) {
    double send = 0, receive = 0;
    for (int rail = 0; rail < cluster.rails; ++rail) {
      double tx = 1, rx = 1;
      for (const PortLoss& loss : losses) {
        if (loss.node != node || loss.rail != rail || ms < loss.start_ms || ms >= loss.end_ms) {
          continue;
        }
        tx = std::min(tx, 1 - loss.tx);
        rx = std::min(rx, 1 - loss.rx);
      }
      send += tx;
      receive += rx;
    }
    left.send[node] = send / cluster.rails;
    left.receive[node] = receive / cluster.rails;
  }
  return left;
}

bool equal(const PortBandwidths& a, const PortBandwidths& b) {
  return a.send == b.send && a.receive == b.receive;
}

/// The bandwidths of all but the first of the calls; nullopt when they changed, or nothing is left
/// of a node.
std::optional<PortBandwidths> bandwidthsOf(std::span<const reports::Iteration> calls,
                                           std::span<const PortLoss> losses,
                                           const scenario::Cluster& cluster) {
  if (calls.size() > 1) calls = calls.subspan(1);
  if (calls.empty()) return std::nullopt;
  const double from = calls.front().start_ms;
  const double to = calls.back().start_ms + calls.back().ms;
  PortBandwidths left = leftAt(from, losses, cluster);
  for (const PortLoss& loss : losses) {
    for (const double edge : {loss.start_ms, loss.end_ms}) {
      if (edge > from && edge < to && !equal(leftAt(edge, losses, cluster), left)) {
        return std::nullopt;
      }
    }
  }
  const bool any = std::ranges::all_of(left.send, [](double share) { return share > 0; }) &&
                   std::ranges::all_of(left.receive, [](double share) { return share > 0; });
  if (!any) return std::nullopt;
  return left;
}

/// The schedule of a strategy, as the ranks run it, where the model knows it: one that lets each
/// rail carry what it can.
std::optional<double> modelOf(const reports::Run& run, Collective operation, std::int64_t elements,
                              const PortBandwidths& left) {
  if (reports::kindOf(run) != baseline::kBalance) return std::nullopt;
  constexpr int kSegments = 2;  // RankConfig::segments
  const auto schedule = schedule::makeSchedule(
      operation == Collective::kAllReduce ? "ring" : schedule::algorithmOf(operation).name,
      {.ranks = static_cast<int>(left.size()),
       .elements = elements,
       .segments = kSegments,
       .window = schedule::kExecutionWindow});
  if (!schedule.ok()) return std::nullopt;
  const auto cost = schedule::costOf(**schedule, left);
  if (!cost.ok()) return std::nullopt;
  return cost->timeOverRing;
}

void compare(const scenario::Scenario& scenario, const reports::Run& run,
             std::span<const reports::Iteration> calls, std::span<const PortLoss> losses,
             reports::CollectiveRow& row) {
  const scenario::Cluster& cluster = scenario.cluster;
  const Collective operation = *schedule::collectiveFromName(row.operation);
  const double busy = schedule::faultFreeTime(operation, cluster.ranks());
  const double bytes = busy * static_cast<double>(row.size_bytes) / cluster.rails;  // of a port
  row.latency_only = mostlyBurst(scenario, bytes);
  constexpr double kBitsPerByte = 8;
  constexpr double kBitsPerMsOfMbit = 1000;
  if (run.goodput_mbit && *run.goodput_mbit > 0 && bytes > 0) {
    row.ideal_ms = bytes * kBitsPerByte / (*run.goodput_mbit * kBitsPerMsOfMbit);
    row.time_over_ideal = row.p50_ms / *row.ideal_ms;
  }
  const auto left = bandwidthsOf(calls, losses, cluster);
  if (!left || cluster.ranksPerNode > 1) return;
  row.send = left->send;
  row.receive = left->receive;
  if (busy > 0) {
    row.bound = schedule::lowerBound(operation, *left, schedule::PortModel::kFluid) / busy;
  }
  const std::int64_t elements =
      row.size_bytes / reduction::sizeOf(*reduction::dataTypeFromName(row.dtype));
  row.model = modelOf(run, operation, elements, *left);
  if (!row.time_over_ideal) return;
  if (row.bound) row.time_over_bound = *row.time_over_ideal / *row.bound;
  if (row.model) row.time_over_model = *row.time_over_ideal / *row.model;
  row.mis_measured =
      !row.latency_only && row.time_over_bound && *row.time_over_bound < 1 - kBoundTolerance;
}

}  // namespace

void compareWithModels(const scenario::Scenario& scenario, reports::Run& run) {
  if (run.collectives.empty()) return;
  const auto losses = lossesOf(scenario, run);
  if (!losses) return;
  // A row without one whole call is missing: find the rows' iterations by their cells.
  const std::vector<scenario::SweepCell> cells = cellsOf(scenario.workload.collective);
  auto row = run.collectives.begin();
  for (int cell = 0; cell < std::ssize(cells) && row != run.collectives.end(); ++cell) {
    std::vector<reports::Iteration> calls;
    for (const reports::Iteration& iteration : run.iterations) {
      if (iteration.index / scenario.workload.iterations == cell) calls.push_back(iteration);
    }
    if (calls.empty()) continue;
    compare(scenario, run, calls, *losses, *row++);
  }
}

}  // namespace faultline::run

#include "harness/scenario/fault_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "base/units.h"
#include "harness/scenario/fault_process.h"
#include "harness/scenario/json.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {
namespace {

/// Adds the fault, or one for each node of its group. Returns the place of the first.
int append(const Fault& fault, const Cluster& cluster, std::vector<Fault>& list) {
  const int first = static_cast<int>(list.size());
  if (!fault.target || fault.target->part != Part::kRailGroup) {
    list.push_back(fault);
    return first;
  }
  for (const int node : groupNodes(*fault.target, cluster)) {
    Fault& member = list.emplace_back(fault);
    member.target = Target{.node = node, .rail = fault.target->rail};
    member.group = first;
    // Each would wait for the bytes of its own node, and all are to strike at one moment.
    if (!std::holds_alternative<During>(fault.trigger) || std::ssize(list) == first + 1) continue;
    member.trigger = After{.mark = After::Mark::kBegin, .fault = first};
    member.every = {};
    member.again.reset();
  }
  return first;
}

void append(const Sequence& sequence, const Cluster& cluster, std::vector<Fault>& list) {
  const std::size_t begin = list.size();
  int before = 0;
  for (Fault fault : sequence.faults) {
    fault.times = sequence.repeat;
    if (After* const after = std::get_if<After>(&fault.trigger)) after->fault = before;
    before = append(fault, cluster, list);
  }
  if (sequence.repeat == 1 || sequence.faults.empty()) return;
  const After again{.delay = sequence.pause, .mark = After::Mark::kEnd, .fault = before};
  for (std::size_t i = begin; i < list.size(); ++i) {
    if (!std::holds_alternative<After>(list[i].trigger)) list[i].again = again;
  }
}

}  // namespace

std::vector<int> groupNodes(const Target& target, const Cluster& cluster) {
  if (!target.nodes.empty()) return target.nodes;
  std::vector<int> all(cluster.nodes);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int ranksOf(const Scenario& scenario) { return placementOf(scenario).processes(); }

int nodeOf(const Scenario& scenario, int rank) { return placementOf(scenario).nodeOf(rank); }

std::vector<Fault> allFaults(const Scenario& scenario) {
  std::vector<Fault> faults;
  for (const Fault& fault : scenario.faults) append(fault, scenario.cluster, faults);
  for (const Sequence& sequence : scenario.sequences) append(sequence, scenario.cluster, faults);
  for (const Fault& fault : expandProcesses(scenario.processes, scenario.cluster, scenario.seed)) {
    append(fault, scenario.cluster, faults);
  }
  for (Fault& fault : faults) {
    if (!fault.target || !fault.target->rank) continue;
    fault.target->node = nodeOf(scenario, *fault.target->rank);
  }
  return faults;
}

std::string inWords(const Target& target) {
  switch (target.part) {
    case Part::kRail:
      if (target.peer) {
        return fmt::format("nodes {} and {}, rail {}", target.node, *target.peer, target.rail);
      }
      return fmt::format("node {}, rail {}", target.node, target.rail);
    case Part::kRailGroup:
      return target.nodes.empty()
                 ? fmt::format("rail {} of all nodes", target.rail)
                 : fmt::format("rail {} of nodes {}", target.rail, fmt::join(target.nodes, ", "));
    case Part::kManagement:
      return fmt::format("node {}, management network", target.node);
    case Part::kProcesses:
      return target.rank ? fmt::format("rank {}", *target.rank)
                         : fmt::format("node {}", target.node);
  }
  return "";
}

std::string inWords(const After& after) {
  if (after.delay == Duration::zero() && after.mark == After::Mark::kBegin) {
    return fmt::format("together with fault {}", after.fault);
  }
  return fmt::format("{} after the {} of fault {}", formatDuration(after.delay), name(after.mark),
                     after.fault);
}

std::string inWords(const Fault& fault) {
  std::string text = fault.kind;
  for (const auto& [name, value] : fault.parameters.all()) {
    text += fmt::format(" {}={}", name, formatParameter(value));
  }
  if (fault.target) text += ", " + inWords(*fault.target);
  if (const auto* moments = std::get_if<Moments>(&fault.trigger)) {
    for (const auto& [time, duration] : moments->list) {
      text += fmt::format(", at {} for {}", formatDuration(time), formatDuration(duration));
    }
    return text;
  }
  if (const auto* at = std::get_if<At>(&fault.trigger)) {
    text += fmt::format(", at {}", formatDuration(at->time));
  } else if (const auto* after = std::get_if<After>(&fault.trigger)) {
    text += ", " + inWords(*after);
  } else if (const auto* during = std::get_if<During>(&fault.trigger)) {
    constexpr double kPercent = 100;
    text += fmt::format(", during iteration {} at {:.0f} %", during->iteration,
                        during->progress * kPercent);
  } else {
    text += ", before the start";
  }
  text += fault.duration ? " for " + formatDuration(*fault.duration) : ", until the end";
  if (fault.times < 2) return text;
  text += fmt::format(", {} times", fault.times);
  if (fault.again) return text + ": again " + inWords(*fault.again);
  return fault.every > Duration::zero() ? text + ", every " + formatDuration(fault.every) : text;
}

std::optional<Duration> earliestEnd(const Sequence& sequence) {
  Duration begin{};  // of the fault that is looked at
  Duration end{};    // of it; without a duration it ends nowhere
  for (const Fault& fault : sequence.faults) {
    if (std::holds_alternative<During>(fault.trigger)) return std::nullopt;
    if (const At* const at = std::get_if<At>(&fault.trigger)) begin = at->time;
    if (const After* const after = std::get_if<After>(&fault.trigger)) {
      begin = (after->mark == After::Mark::kEnd ? end : begin) + after->delay;
    }
    end = begin + fault.duration.value_or(Duration::zero());
  }
  const At* const first =
      sequence.faults.empty() ? nullptr : std::get_if<At>(&sequence.faults.front().trigger);
  const Duration once = end - (first == nullptr ? Duration::zero() : first->time);
  return end + (sequence.repeat - 1) * (once + sequence.pause);
}

}  // namespace faultline::scenario

#include "harness/scenario/fault_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/random.h"
#include "harness/scenario/lifetime.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

// Another stream than what else is drawn from the seed.
constexpr std::uint64_t kStream = 0xc4a0'5bad'0f11'7e5e;

std::vector<int> oneAfterTheOther(int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> nodesOf(const FaultProcess& process, const Cluster& cluster) {
  return process.nodes.empty() ? oneAfterTheOther(cluster.nodes) : process.nodes;
}

std::vector<int> railsOf(const FaultProcess& process, const Cluster& cluster) {
  return process.rails.empty() ? oneAfterTheOther(cluster.rails) : process.rails;
}

/// Who is being struck, or spared after a strike, until when.
class Occupation {
 public:
  Occupation(const Cluster& cluster, std::size_t processes)
      : rails_(cluster.rails), nodes_(cluster.nodes), striking_(processes) {}

  bool isFree(const Target& target, Duration at, std::size_t index, const FaultProcess& process) {
    std::erase_if(striking_[index], [&](Duration until) { return until <= at; });
    if (process.atMost > 0 && std::ssize(striking_[index]) >= process.atMost) return false;
    if (target.part == Part::kProcesses) return nodes_[target.node] <= at;
    const auto busy = std::ranges::count_if(rails_, [&](Duration until) { return until > at; });
    return rails_[target.rail] <= at && busy + process.spareRails < std::ssize(rails_);
  }
  void take(const Target& target, std::size_t index, Duration until, Duration rest) {
    striking_[index].push_back(until);
    (target.part == Part::kProcesses ? nodes_[target.node] : rails_[target.rail]) = until + rest;
  }

 private:
  std::vector<Duration> rails_;
  std::vector<Duration> nodes_;
  std::vector<std::vector<Duration>> striking_;  // ends of the strikes of each process
};

/// What fails and is repaired again and again.
struct Element {
  std::size_t process;
  int node;  // -1: a whole rail
  int rail;
  Random random;
  Duration next{};
};

std::size_t drawKind(const std::vector<FaultProcess::Kind>& kinds, Random& random) {
  std::uint64_t all = 0;
  for (const auto& kind : kinds) all += static_cast<std::uint64_t>(kind.weight);
  std::uint64_t left = random.below(all);
  std::size_t index = 0;
  while (left >= static_cast<std::uint64_t>(kinds[index].weight)) {
    left -= static_cast<std::uint64_t>(kinds[index++].weight);
  }
  return index;
}

Target targetOf(const Element& element, const FaultProcess& process, const FaultProcess::Kind& kind,
                const Cluster& cluster) {
  const injector::FaultKind* const row = injector::findFaultKind(kind.name);
  if (row != nullptr && row->target == injector::TargetKind::kProcesses) {
    return {.node = element.node, .part = Part::kProcesses};
  }
  if (element.node >= 0) return {.node = element.node, .rail = element.rail};
  return {.rail = element.rail, .part = Part::kRailGroup, .nodes = nodesOf(process, cluster)};
}

std::vector<Element> elementsOf(const std::vector<FaultProcess>& processes, const Cluster& cluster,
                                std::uint64_t seed) {
  std::vector<Element> elements;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const bool whole = processes[i].per == FaultProcess::Element::kRail;
    for (const int node : whole ? std::vector<int>{-1} : nodesOf(processes[i], cluster)) {
      for (const int rail : railsOf(processes[i], cluster)) {
        const std::uint64_t place = (static_cast<std::uint64_t>(i) << 32) +
                                    (static_cast<std::uint64_t>(node + 1) << 16) +
                                    static_cast<std::uint64_t>(rail);
        Random random(Random::mix(Random::mix(seed) ^ kStream) ^ Random::mix(place + 1));
        elements.push_back({i, node, rail, random});
        elements.back().next =
            draw(processes[i].failures, processes[i].accelerate, elements.back().random);
      }
    }
  }
  return elements;
}

}  // namespace

bool canBeRandom(const injector::FaultKind& kind) {
  return kind.target != injector::TargetKind::kNone && !kind.forGood && !kind.between;
}

std::vector<Fault> expandProcesses(const std::vector<FaultProcess>& processes,
                                   const Cluster& cluster, std::uint64_t seed) {
  std::vector<Element> elements = elementsOf(processes, cluster, seed);
  Occupation occupation(cluster, processes.size());
  // By time; of those at the same moment the first in the list.
  using Due = std::pair<Duration, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue;
  for (std::size_t i = 0; i < elements.size(); ++i) queue.emplace(elements[i].next, i);
  std::map<std::tuple<std::size_t, std::size_t, int, int>, Fault> faults;
  while (!queue.empty()) {
    const auto [at, place] = queue.top();
    queue.pop();
    Element& element = elements[place];
    const FaultProcess& process = processes[element.process];
    if (at >= process.length) continue;
    const std::size_t index = drawKind(process.kinds, element.random);
    const FaultProcess::Kind& kind = process.kinds[index];
    const Duration repair =
        std::max(process.shortest, draw(process.repairs, process.accelerate, element.random));
    const Duration until = std::min(at + repair, process.length);
    const Target target = targetOf(element, process, kind, cluster);
    const bool struck =
        until - at >= process.shortest && occupation.isFree(target, at, element.process, process);
    if (struck) {
      occupation.take(target, element.process, until, process.rest);
      const int rail = target.part == Part::kProcesses ? -1 : target.rail;
      Fault& fault = faults[{element.process, index, element.node, rail}];
      if (fault.kind.empty()) {
        fault = {.kind = kind.name,
                 .parameters = kind.parameters,
                 .target = target,
                 .trigger = Moments{},
                 .duration = until - at};
      }
      auto& moments = std::get<Moments>(fault.trigger).list;
      moments.push_back({at, until - at});
      fault.times = static_cast<int>(moments.size());
      fault.duration = std::max(*fault.duration, until - at);
    }
    const Duration works = draw(process.failures, process.accelerate, element.random);
    queue.emplace((struck ? until : at) + works, place);
  }
  std::vector<Fault> list;
  for (auto& [key, fault] : faults) list.push_back(std::move(fault));
  return list;
}

int elementsOf(const FaultProcess& process, const Cluster& cluster) {
  const auto rails = static_cast<int>(railsOf(process, cluster).size());
  if (process.per == FaultProcess::Element::kRail) return rails;
  return rails * static_cast<int>(nodesOf(process, cluster).size());
}

std::string inWords(const FaultProcess& process, const Cluster& cluster) {
  const auto times = [](const Lifetime& lifetime) {
    std::string text = fmt::format("{} ({}", formatDuration(lifetime.mean), name(lifetime.kind));
    if (lifetime.kind == Lifetime::Kind::kWeibull)
      text += fmt::format(", shape {}", lifetime.shape);
    if (lifetime.kind == Lifetime::Kind::kLognormal) {
      text += fmt::format(", sigma {}", lifetime.sigma);
    }
    return text + ")";
  };
  std::string text = fmt::format("each of {} {} fails every {} on average and is repaired after {}",
                                 elementsOf(process, cluster),
                                 process.per == FaultProcess::Element::kNic ? "NICs" : "rails",
                                 times(process.failures), times(process.repairs));
  if (process.accelerate != 1) {
    text += fmt::format("; these times pass {} times faster, {} in 1s", process.accelerate,
                        formatDuration(std::chrono::round<std::chrono::milliseconds>(
                            std::chrono::duration<double>(process.accelerate))));
  }
  return text;
}

}  // namespace faultline::scenario

#include "harness/scenario/chaos.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/random.h"

namespace faultline::scenario {
namespace {

// Another stream than what else is drawn from the seed.
constexpr std::uint64_t kStream = 0xc4a0'5bad'0f11'7e5e;
// Kinds and places that are tried for one strike.
constexpr int kAttempts = 32;

/// Who is being struck, or spared after a strike, until when.
class Occupation {
 public:
  explicit Occupation(const Cluster& cluster) : rails_(cluster.rails), nodes_(cluster.nodes) {}

  bool isFree(const Target& target, Duration at, int spareRails) const {
    if (target.part == Part::kProcesses) return nodes_[target.node] <= at;
    const auto busy = std::ranges::count_if(rails_, [&](Duration until) { return until > at; });
    return rails_[target.rail] <= at && busy + spareRails < std::ssize(rails_);
  }
  void take(const Target& target, Duration until) {
    (target.part == Part::kProcesses ? nodes_[target.node] : rails_[target.rail]) = until;
  }

 private:
  std::vector<Duration> rails_;
  std::vector<Duration> nodes_;
};

/// In whole milliseconds, which people can read; the bench does not look more often.
Duration share(double part, Duration whole) {
  const Duration exact(static_cast<std::int64_t>(part * static_cast<double>(whole.count())));
  return std::chrono::floor<std::chrono::milliseconds>(exact);
}

Target draw(const Chaos::Kind& kind, const Cluster& cluster, Random& random) {
  Target target{.node = static_cast<int>(random.below(cluster.nodes))};
  const injector::FaultKind* const row = injector::findFaultKind(kind.name);
  if (row != nullptr && row->target == injector::TargetKind::kProcesses) {
    target.part = Part::kProcesses;
  } else {
    target.rail = static_cast<int>(random.below(cluster.rails));
  }
  return target;
}

}  // namespace

bool canBeRandom(const injector::FaultKind& kind) {
  return kind.target != injector::TargetKind::kNone && !kind.forGood;
}

std::vector<Fault> expandChaos(const Chaos& chaos, const Cluster& cluster, std::uint64_t seed) {
  Random random(Random::mix(seed) ^ kStream);
  Occupation occupation(cluster);
  std::map<std::tuple<std::size_t, int, int>, Fault> faults;  // by kind, node and rail
  for (Duration slot{}; slot < chaos.length; slot += chaos.every) {
    const Duration at = slot + share(random.unit(), chaos.every);
    const Duration lasts = chaos.shortest + share(random.unit(), chaos.longest - chaos.shortest);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::size_t index = random.below(chaos.kinds.size());
      const Chaos::Kind& kind = chaos.kinds[index];
      const Target target = draw(kind, cluster, random);
      if (at + lasts > chaos.length || !occupation.isFree(target, at, chaos.spareRails)) continue;
      occupation.take(target, at + lasts + chaos.rest);
      Fault& fault = faults[{index, target.node, target.rail}];
      if (fault.kind.empty()) {
        fault = {.kind = kind.name,
                 .parameters = kind.parameters,
                 .target = target,
                 .trigger = Moments{},
                 .duration = lasts};
      }
      auto& moments = std::get<Moments>(fault.trigger).list;
      moments.push_back({at, lasts});
      fault.times = static_cast<int>(moments.size());
      fault.duration = std::max(*fault.duration, lasts);
      break;
    }
  }
  std::vector<Fault> list;
  for (auto& [key, fault] : faults) list.push_back(std::move(fault));
  return list;
}

std::vector<Fault> allFaults(const Scenario& scenario) {
  std::vector<Fault> faults = scenario.faults;
  if (scenario.chaos) {
    for (Fault& fault : expandChaos(*scenario.chaos, scenario.cluster, scenario.seed)) {
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

}  // namespace faultline::scenario

#include "harness/record/damage.h"

#include <algorithm>
#include <utility>

namespace faultline::run {
std::optional<Damage> damageBehind(std::span<const FaultChange> changes, TimePoint when, int peer) {
  std::optional<Damage> latest;
  for (const FaultChange& change : changes) {
    if (change.broken) {
      const bool concerned = !change.peer || *change.peer == peer;
      if (!concerned || change.before > when) continue;
      const bool sameStrike = latest && !latest->over;
      latest = Damage{.before = sameStrike ? latest->before : change.before, .after = change.after};
    } else if (latest && !latest->over) {
      // Connections in back-off come back after as long as they were away.
      const Duration outage = change.after - latest->before;
      if (change.after + std::max(kAftermath, outage) < when) {
        latest.reset();
      } else if (change.before <= when) {
        latest->over = change.after;
      }
    }
  }
  return latest;
}

std::optional<Damage> whatBroke(std::vector<Damage> damages) {
  std::ranges::stable_sort(damages, {}, &Damage::before);
  std::optional<Damage> latest;
  for (auto one = damages.begin(); one != damages.end(); ++one) {
    const bool broken = std::any_of(damages.begin(), one, [&](const Damage& earlier) {
      const bool lasts = !earlier.over || *earlier.over > one->before;
      return one->group && earlier.group == one->group && lasts;
    });
    if (!broken) latest = *one;
  }
  return latest;
}

std::vector<TimePoint> FaultChanges::damages() const {
  std::vector<TimePoint> moments;
  for (const OfFault& fault : faults) {
    for (const FaultChange& change : fault.changes) {
      if (change.broken) moments.push_back(change.before);
    }
  }
  std::ranges::sort(moments);
  return moments;
}

std::optional<TimePoint> FaultChanges::latestBefore(TimePoint when) const {
  std::optional<TimePoint> latest;
  for (const TimePoint damage : damages()) {
    if (damage <= when) latest = damage;
  }
  return latest;
}

std::optional<Damage> FaultChanges::behind(TimePoint when, int rail, int nodeA, int nodeB) const {
  std::vector<Damage> damages;
  for (const OfFault& fault : faults) {
    if (fault.rail != rail || (fault.node != nodeA && fault.node != nodeB)) continue;
    const auto damage = damageBehind(fault.changes, when, fault.node == nodeA ? nodeB : nodeA);
    if (!damage) continue;
    damages.push_back(*damage);
    damages.back().group = fault.group;
  }
  return whatBroke(std::move(damages));
}

}  // namespace faultline::run

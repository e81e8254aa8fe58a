#include "harness/run/damage.h"

#include <algorithm>
#include <utility>

namespace faultline::run {
namespace {

// A failure that a fault caused may be noticed this long after the fault has ended (verdicts of
// probes, a busy machine), or as long as it lasted (connections in back-off).
constexpr Duration kAftermath = 1s;

}  // namespace

std::optional<Damage> damageBehind(std::span<const injector::Transition> transitions,
                                   TimePoint when, std::string_view peer) {
  std::optional<Damage> latest;
  for (const injector::Transition& transition : transitions) {
    if (transition.broken) {
      const bool concerned = transition.peer.empty() || transition.peer == peer;
      if (!concerned || transition.before > when) continue;
      const bool sameStrike = latest && !latest->over;
      latest = Damage{.before = sameStrike ? latest->before : transition.before,
                      .after = transition.after};
    } else if (latest && !latest->over) {
      const Duration outage = transition.after - latest->before;
      if (transition.after + std::max(kAftermath, outage) < when) {
        latest.reset();
      } else if (transition.before <= when) {
        latest->over = transition.after;
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

}  // namespace faultline::run

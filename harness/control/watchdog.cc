#include "harness/control/watchdog.h"

#include <algorithm>
#include <vector>

namespace faultline::run {
namespace {

/// Those that decide what the instances of a server do.
std::vector<int> firstRanks(const scenario::Scenario& scenario) {
  std::vector<int> ranks{0};
  if (scenario.workload.serving->disaggregated) ranks.push_back(scenario.cluster.ranks() / 2);
  return ranks;
}

}  // namespace

void Watchdog::started(TimePoint when) {
  lastMark_ = when;
  if (scenario_.workload.serves()) server_.started(firstRanks(scenario_), when);
}

std::optional<HangProof::Hang> Watchdog::check(TimePoint time, Duration patience,
                                               std::uint64_t delivered,
                                               const std::optional<IterationTable::Row>& open) {
  if (!proof_.latest()) return std::nullopt;
  if (delivered > lastDelivered_) lastGrowth_ = time;
  lastDelivered_ = delivered;
  // Between two iterations the ranks wait for each other, which can hang as well.
  TimePoint since = open ? open->resumed + scenario_.workload.compute.duration : lastMark_;
  // A server may have nothing to do, and says so.
  if (scenario_.workload.serves()) since = server_.quietSince();
  if (time < std::max(since, lastGrowth_) + patience) return std::nullopt;
  HangProof::Hang hang = proof_.judge(delivered);
  // What was in flight is not all: transfers go on to begin, each with a part on a living rail,
  // until there are no more of them. From then on not one byte has moved.
  if (scenario_.workload.serves()) {
    hang.payload = 0;
    hang.watchedFrom = std::max(hang.fault, lastGrowth_);
  }
  return hang;
}

}  // namespace faultline::run

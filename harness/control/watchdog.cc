#include "harness/control/watchdog.h"

#include <algorithm>
#include <vector>

#include "harness/scenario/workload_kind.h"

namespace faultline::run {
void Watchdog::started(TimePoint when) {
  lastMark_ = when;
  const auto tellers = scenario_.workload.kind->tellers;
  if (tellers != nullptr) server_.started(tellers(scenario_), when);
}

std::optional<HangProof::Hang> Watchdog::check(TimePoint time, Duration patience,
                                               std::uint64_t delivered,
                                               const std::optional<IterationTable::Row>& open) {
  if (!proof_.latest()) return std::nullopt;
  if (delivered > lastDelivered_) lastGrowth_ = time;
  lastDelivered_ = delivered;
  // Between two iterations the ranks wait for each other, which can hang as well.
  TimePoint since = open ? open->resumed + scenario_.workload.compute.duration : lastMark_;
  // Ranks that may have nothing to do say so.
  const bool told = scenario_.workload.kind->tellers != nullptr;
  if (told) since = server_.quietSince();
  if (time < std::max(since, lastGrowth_) + patience) return std::nullopt;
  HangProof::Hang hang = proof_.judge(delivered);
  // What was in flight is not all: transfers go on to begin, each with a part on a living rail,
  // until there are no more of them. From then on not one byte has moved.
  if (told) {
    hang.payload = 0;
    hang.watchedFrom = std::max(hang.fault, lastGrowth_);
  }
  return hang;
}

}  // namespace faultline::run

#include "resilient_ccl/plan/port_sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace faultline::plan {

PortSampler::PortSampler(double reference, int rails, Bytes loadedFrom)
    : reference_(reference), rails_(rails), loadedFrom_(loadedFrom) {}

void PortSampler::sample(const std::vector<std::optional<PathLoad>>& paths, TimePoint now) {
  if (now - sampled_ < kInterval) return;
  const Duration elapsed = now - sampled_;
  railsUp_ = 0;
  anyPath_ = false;
  for (const auto& path : paths) {
    if (!path) continue;
    anyPath_ = true;
    railsUp_ |= path->railsUp;
  }
  if (before_.size() == paths.size()) {
    const double kept = std::exp(-toSeconds(elapsed) / toSeconds(kMemory));
    send_.fade(kept);
    receive_.fade(kept);
    if (elapsed <= kLongestInterval) interval(paths, toSeconds(elapsed));
  }
  before_ = paths;
  sampled_ = now;
}

void PortSampler::interval(const std::vector<std::optional<PathLoad>>& paths, double seconds) {
  // A port is shared by all paths: what it carries for any of them counts.
  double sent = 0, arrived = 0;
  Bytes outstandingBefore = 0, outstanding = 0;
  int busyPaths = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i] || !before_[i]) continue;
    sent += static_cast<double>(paths[i]->acknowledged - before_[i]->acknowledged);
    arrived += static_cast<double>(paths[i]->arrived - before_[i]->arrived);
    outstanding += paths[i]->outstanding;
    outstandingBefore += before_[i]->outstanding;
    if (paths[i]->busy > before_[i]->busy) ++busyPaths;
  }
  const bool sendLoaded = std::min(outstandingBefore, outstanding) >= loadedFrom_;
  const bool arrivalsLoaded = arrived >= static_cast<double>(loadedFrom_);

  bool sending = false, receiving = false;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i] || !before_[i]) continue;
    const PathLoad &now = *paths[i], &then = *before_[i];
    // A rail that has just been lost, or won, is being repaired; one that stands still may belong
    // to a process that does: silence is evidence only of who is heard.
    if (now.railsUp != then.railsUp) continue;
    if (now.heard <= sampled_ && now.acknowledged == then.acknowledged) continue;
    if (busyPaths == 1) {
      send_.add(static_cast<double>(now.loadedBytes - then.loadedBytes),
                toSeconds(now.loaded - then.loaded));
    } else if (sendLoaded && toSeconds(now.busy - then.busy) >= kBusyShare * seconds) {
      sending = true;
    }
    receiving |=
        (now.receiving && then.receiving) || (arrivalsLoaded && now.arrived > then.arrived);
  }
  if (sending) send_.add(sent, seconds);
  if (receiving) receive_.add(arrived, seconds);
}

std::uint16_t PortSampler::parts(const Evidence& evidence) const {
  if (evidence.seconds < toSeconds(kLeastTime)) return 0;
  const double share = evidence.bytes / evidence.seconds / reference_;
  return static_cast<std::uint16_t>(
      std::clamp(std::round(share * Health::kWhole), 1.0, static_cast<double>(kMostParts)));
}

Observation PortSampler::observed() const {
  Observation result;
  if (anyPath_) {
    result.live = quantise(static_cast<double>(std::popcount(railsUp_)) / rails_);
  }
  result.send = parts(send_);
  result.receive = parts(receive_);
  return result;
}

}  // namespace faultline::plan

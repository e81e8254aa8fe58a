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
  paths_.resize(paths.size());
  if (before_.size() == paths.size()) {
    const double kept = std::exp(-toSeconds(elapsed) / toSeconds(kMemory));
    for (Path& path : paths_) {
      path.send.fade(kept);
      path.receive.fade(kept);
      path.own.fade(kept);
    }
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

  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i] || !before_[i]) continue;
    const PathLoad &now = *paths[i], &then = *before_[i];
    // A rail that has just been lost, or won, is being repaired; one that stands still may belong
    // to a process that does: silence is evidence only of who is heard.
    if (now.railsUp != then.railsUp) continue;
    if (now.heard <= sampled_ && now.acknowledged == then.acknowledged) continue;
    if (busyPaths == 1) {
      const auto bytes = static_cast<double>(now.loadedBytes - then.loadedBytes);
      paths_[i].send.add(bytes, toSeconds(now.loaded - then.loaded));
      paths_[i].own.add(bytes, toSeconds(now.loaded - then.loaded));
    } else if (sendLoaded && toSeconds(now.busy - then.busy) >= kBusyShare * seconds) {
      paths_[i].send.add(sent, seconds);
      paths_[i].own.add(static_cast<double>(now.acknowledged - then.acknowledged), seconds);
    }
    const bool receiving = now.receiving && then.receiving;
    if (receiving || (arrivalsLoaded && now.arrived > then.arrived)) {
      paths_[i].receive.add(arrived, seconds);
    }
  }
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
  for (const Path& path : paths_) {
    result.paths.push_back(
        {.send = parts(path.send), .receive = parts(path.receive), .own = parts(path.own)});
  }
  return result;
}

}  // namespace faultline::plan

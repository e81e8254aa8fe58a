#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "resilient_ccl/channel/load_meter.h"
#include "resilient_ccl/plan/health.h"

namespace faultline::plan {

using PathLoad = channel::LinkLoad;

/// What one process has seen of its ports.
struct Observation {
  /// What the rails that reach anybody are of all rails.
  std::uint16_t live = Health::kWhole;
  /// What the port carried while it had more to carry than it carried, in parts of the reference
  /// (Health::kWhole): it can do as much, and perhaps more, for what held it up may be the port at
  /// the other end. 0: not seen lately.
  std::uint16_t send = 0;
  std::uint16_t receive = 0;

  bool operator==(const Observation&) const = default;
};

/// Turns what paths have carried into rates of this process's port. Only times count in which
/// there was more to carry: an idle network, and a rank that is slow to post, say nothing. Pure;
/// times are handed in.
class PortSampler {
 public:
  /// Two looks at the paths are this far apart, at least: some chunks on a slow rail.
  static constexpr Duration kInterval = 10ms;
  /// What happened in a longer one is not known well enough.
  static constexpr Duration kLongestInterval = 60ms;
  /// Time after which an observation weighs 1/e.
  static constexpr Duration kMemory = 300ms;
  /// Less than so much time under load is not enough for a rate: what a shaper lets pass at once
  /// after a pause would look like its rate.
  static constexpr Duration kLeastTime = 60ms;
  /// Of an interval a path must have been busy to count as loaded throughout.
  static constexpr double kBusyShare = 0.9;
  /// Above the reference a port is faster than ever measured, and whole.
  static constexpr int kMostParts = 4 * Health::kWhole;

  /// `reference`: what a whole port carries, in bytes per second and direction. From `loadedFrom`
  /// bytes outstanding, or arrived in an interval, a port counts as loaded.
  PortSampler(double reference, int rails, Bytes loadedFrom);

  /// The state of all paths; nothing for those that are not part of the network.
  void sample(const std::vector<std::optional<PathLoad>>& paths, TimePoint now);

  Observation observed() const;

 private:
  struct Evidence {
    double bytes = 0;
    double seconds = 0;

    void fade(double kept) { bytes *= kept, seconds *= kept; }
    void add(double more, double time) { bytes += more, seconds += time; }
  };
  void interval(const std::vector<std::optional<PathLoad>>& paths, double seconds);
  std::uint16_t parts(const Evidence& evidence) const;

  double reference_;
  int rails_;
  Bytes loadedFrom_;
  Evidence send_, receive_;
  std::vector<std::optional<PathLoad>> before_;
  TimePoint sampled_{};
  std::uint64_t railsUp_ = 0;
  bool anyPath_ = false;
};

}  // namespace faultline::plan

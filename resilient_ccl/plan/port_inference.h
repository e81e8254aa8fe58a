#pragma once

#include <vector>

#include "resilient_ccl/plan/health.h"
#include "resilient_ccl/plan/port_sampler.h"

namespace faultline::plan {

/// Finds the ports behind what all ranks have seen. A path from i to j that has more to carry than
/// it carries is held up by one of two ports: i's, which then sends all it can, or j's, which then
/// receives all it can. So a port is at least as fast as the fastest it has been seen, and a path
/// that is slow although neither of its ports was seen to be whole says that one of them is slow;
/// as few ranks as possible are blamed. Where a port has many paths, each is too small a part of
/// what its other end carries to show there; then a port is slow to which most others send far less
/// than to somebody else, although it is not busy (and the same of sending). Ports that nothing is
/// known of keep what was known. Lost rails need no guess. Pure.
class PortInference {
 public:
  /// A port that carries this share of what it should is whole: less differs from moment to moment.
  static constexpr double kFull = 0.85;
  /// Where the processors cannot keep up, all ports carry less: what is whole is judged by what so
  /// many of the ports that are known do not exceed. But one that carries less than this is slow.
  static constexpr double kMost = 0.75;
  static constexpr double kLeastFull = 0.6;
  /// Shares are rounded to one of so many steps.
  static constexpr int kSteps = 64;
  /// A path is far slower than another below this share of it.
  static constexpr double kFair = 0.8;

  explicit PortInference(int ranks);

  /// `seen`: by rank; `paths` in each likewise by rank. An empty one: nothing has been heard.
  HealthVector infer(const std::vector<Observation>& seen);

 private:
  /// What is left of a port's live rails.
  struct Port {
    double send = 1;
    double receive = 1;
  };
  struct Path;
  class Judgement;

  std::vector<Port> ports_;
};

}  // namespace faultline::plan

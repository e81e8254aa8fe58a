#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "resilient_ccl/schedule/bound.h"

namespace faultline::schedule {

/// A network of full-duplex ports, one per rank, in simulated time. Transfers are added when they
/// may move and come back when they have left the ports. Pure; deterministic.
class PortSimulator {
 public:
  struct Transfer {
    int id = 0;
    int from = 0;
    int to = 0;
    double size = 0;      ///< in units of S; > 0
    double overhead = 0;  ///< time for which the message occupies its ports besides its data
    /// Transfers of one stream (a lane between two ranks) move one after the other, as messages on
    /// a connection do. Same stream, same ranks.
    std::int64_t stream = 0;
    int link = -1;  ///< index of the link between the ports that it takes; -1: an unlimited one
  };
  struct Finished {
    int id = 0;
    double time = 0;
  };

  virtual ~PortSimulator() = default;

  /// Adds a transfer at `time`, which must not be before an earlier event.
  virtual void add(const Transfer& transfer, double time) = 0;
  /// When the next transfer finishes, if none is added before.
  virtual std::optional<double> nextTime() = 0;
  /// Removes and returns the transfers that finish at nextTime().
  virtual std::vector<Finished> takeNext() = 0;
};

/// `bandwidths`: of the ranks' ports, one per rank.
/// kFluid: the streams move at once and share the ports max-min fairly.
/// kOnePort: a transfer has its two ports to itself, at the rate of the slower one; ports serve
/// transfers in the order of arrival, skipping those whose other port is busy.
/// `links`: bandwidths of what transfers name as their links, for both models.
std::unique_ptr<PortSimulator> makePortSimulator(PortModel model, const PortBandwidths& bandwidths,
                                                 const std::vector<double>& links = {});

}  // namespace faultline::schedule

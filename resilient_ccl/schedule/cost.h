#pragma once

#include "base/status.h"
#include "resilient_ccl/schedule/bound.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

struct CostOptions {
  PortModel portModel = PortModel::kFluid;
  /// Latency of a message, in units of S/B; does not occupy the ports.
  double alpha = 0;
  /// Ranks that share the NICs of a node (0..n-1 on node 0, and so on). With more than one B is the
  /// bandwidth of a healthy node, and a node has that of its slowest rank.
  int ranksPerNode = 1;
  /// Bandwidth per rank and direction inside a node, as a multiple of B; unless it is given, moving
  /// data inside a node takes practically no time.
  double insideBandwidth = 1e6;
  /// Bandwidths of the links between ranks, as fractions of a healthy port, from a to b at a *
  /// ranks
  /// + b (`LiveRails::links`); empty: only ports limit. Not together with nodes of several ranks.
  std::vector<double> links = {};
  /// Time for which a message occupies its ports besides its data, in units of S/B.
  double perMessage = 0;
  /// Operations that are played on fluid ports where there are macro steps, too; more are costed
  /// from these. Half a million take some seconds, twice as many four times as long.
  std::int64_t mostPlayed = std::int64_t{1} << 19;
};

/// What a schedule costs. Times are in units of S/B (bytes per rank / healthy port bandwidth).
struct Cost {
  double time = 0;
  double ringTime = 0;   ///< fault-free ring (or pipeline, `faultFreeTime`) with the same alpha and
                         ///< perMessage
  double boundTime = 0;  ///< bandwidth term of the best possible algorithm (`lowerBound`)
  double timeOverRing = 1;              ///< 1 where there is nothing to send
  double boundOverRing = 1;             ///< likewise
  double timeOverBound = 1;             ///< likewise
  std::int64_t messagesPerRankMax = 0;  ///< the larger of sent and received, of the busiest rank
  int depth = 0;  ///< longest chain of messages each of which needs what the one before brought
  bool fromSteps = false;  ///< costed from macro steps, see below
};

/// Plays the schedule on simulated ports. `bandwidths`: one per rank. Kinds of pieces,
/// reductions and copies take no time; byte watermarks are taken as "all of it".
///
/// A schedule of macro steps is costed from its steps (`costOfSteps`) on one-port ports, which
/// carry them in their order, and where it has more operations than `mostPlayed`; `fromSteps` says
/// so. Any other schedule must be a correct one
/// (kInvalidArgument otherwise, with the first problem) and not too large (kUnsupported above
/// OpTable::kMaxOps).
Result<Cost> costOf(const Schedule& schedule, const PortBandwidths& bandwidths,
                    const CostOptions& options = {});

}  // namespace faultline::schedule

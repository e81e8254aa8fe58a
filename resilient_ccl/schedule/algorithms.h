#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/schedule/bound.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// The window that runs best over real sockets (docs/schedules.md): with more, senders collide at a
/// slow inlet; with less, rails idle while the others finish their parts of a message. The cost
/// model, whose ports queue nothing, wants 0.
constexpr int executionWindow(int rails) {
  constexpr int kOfOneRail = 3, kPerRail = 2;
  return std::max(kOfOneRail, kPerRail * rails);
}

/// That of an AllReduce among so many ranks, or nodes. Over several rails two from each peer at
/// least: a peer that has lost a rail, or is busy elsewhere, leaves rails to the others.
constexpr int allReduceWindow(int rails, int peers) {
  constexpr int kPerPeer = 2;
  return rails == 1 ? executionWindow(rails) : std::max(executionWindow(rails), kPerPeer * peers);
}

/// What a schedule is made for. All ranks must use equal values.
struct ScheduleRequest {
  int ranks = 1;
  std::int64_t elements = 0;  ///< of data per rank
  /// How many parts the buffer is worked on in: lanes of a ring, pipeline segments of others.
  int segments = 1;
  /// Receives of a kind that are granted at a time (optcc); 0 = one from every peer.
  int window = 0;
  PortBandwidths bandwidths = {};  ///< empty = all healthy
  int root = 0;                    ///< of a Broadcast or Reduce
  /// Ranks that share the NICs of a node: 0..n-1 on node 0, and so on; divides `ranks`. More than
  /// 1: the bandwidth of a node, as a fraction of a healthy node's, is that of its slowest rank.
  int ranksPerNode = 1;
  /// What the shares of unequal ranks are made for.
  PortModel shares = PortModel::kFluid;
};

/// Who sends to a rank at the same time, and so meets at its port.
enum class Senders {
  kFew,    ///< a neighbour, or the leaves of a tree
  kRings,  ///< its neighbours in several rings
  kAll,    ///< all others in turn
};

/// An algorithm: a pure function from a request to a schedule.
struct Algorithm {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Schedule> (*make)(const ScheduleRequest&);
  Collective collective = Collective::kAllReduce;
  Senders senders = Senders::kFew;
};

/// The algorithms for AllReduce, in the order in which they are listed.
std::span<const Algorithm> algorithms();
/// Those and the ones for other collectives.
std::span<const Algorithm> allAlgorithms();

/// kFew for an unknown name.
Senders sendersOf(std::string_view algorithm);

/// The first that is listed for a collective.
const Algorithm& algorithmOf(Collective collective);

/// The schedule of the named algorithm. kNotFound for an unknown name (the message lists the known
/// ones), kInvalidArgument for impossible numbers.
Result<std::unique_ptr<Schedule>> makeSchedule(std::string_view algorithm,
                                               const ScheduleRequest& request);

}  // namespace faultline::schedule

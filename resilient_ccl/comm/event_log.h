#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/channel/link.h"
#include "resilient_ccl/comm/plan_event.h"
#include "resilient_ccl/fabric/fabric.h"

namespace faultline::comm {

/// Up to where somebody has read what happened: the events before it.
struct EventCursor {
  std::uint64_t failovers = 0;
  std::uint64_t failbacks = 0;
  std::uint64_t degradations = 0;
  std::uint64_t plans = 0;
  std::uint64_t portTests = 0;
};

/// What the network did to this process. Peers are processes: ranks of the first communicator.
struct CommunicatorEvents {
  struct PeerFailover {
    int peer;
    channel::Failover failover;
  };
  struct PeerFailback {
    int peer;
    int rail;
    TimePoint when;
  };
  struct PeerDegradation {
    int peer;
    channel::RailDegradation change;
  };
  /// From the cursor that was asked for on, or, where that has been forgotten, from later on.
  std::vector<PeerFailover> failovers;
  std::vector<PeerFailback> failbacks;
  std::vector<PeerDegradation> degradations;  ///< beginnings and ends
  std::vector<PlanEvent> plans;
  std::vector<PortTestEvent> portTests;  ///< of communicators whose rank 0 this process is
  EventCursor first;  ///< of the lists here: what is between the one asked for and it is lost
  /// Since the process joined, whatever was asked for.
  fabric::FabricCounters counters;
};

/// The latest failovers, failbacks, changes of slow rails, plans and port tests of a process: so
/// many that who reads now and then misses none, and never more, however long a job runs. Not
/// thread-safe.
class EventLog {
 public:
  /// Of each kind: some 100 bytes each. A rail that flaps makes one in ten seconds, for each peer.
  static constexpr std::size_t kMostKept = 4096;

  void failedOver(int peer, const channel::Failover& failover);
  void failedBack(int peer, int rail, TimePoint when);
  void degraded(int peer, const channel::RailDegradation& change);
  /// What the latest failover of `rail` to `peer` had for a cause, and where; only if its path had
  /// been blamed, and it has not been forgotten.
  void explained(int peer, int rail, channel::Cause cause, channel::Where where);
  void planned(PlanEvent plan);
  void tested(const PortTestEvent& test);
  void counted(const fabric::FabricCounters& counters) { counters_ = counters; }

  CommunicatorEvents since(const EventCursor& cursor) const;

 private:
  EventCursor first_;  // that is kept
  std::deque<CommunicatorEvents::PeerFailover> failovers_;
  std::deque<CommunicatorEvents::PeerFailback> failbacks_;
  std::deque<CommunicatorEvents::PeerDegradation> degradations_;
  std::deque<PlanEvent> plans_;
  std::deque<PortTestEvent> portTests_;
  fabric::FabricCounters counters_;
};

}  // namespace faultline::comm

#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/comm/communicator.h"
#include "wire/rank.h"

namespace faultline::workload {

/// Tells what has happened on the network, in pieces: a job that is cut off has told what it knew.
class EventReport {
 public:
  /// Where the next message goes on.
  const comm::EventCursor& cursor() const { return cursor_; }
  /// What no message has told yet, and the counters from the beginning on; `events` are those from
  /// `cursor` on. A failover whose place is still being asked about waits for a later message,
  /// unless this is the last. What the communicator had forgotten before it was asked is counted.
  wire::Network takeNew(const comm::CommunicatorEvents& events, bool last);

  /// All further events are of another communicator, made after this one, whose rank i was
  /// `ranks[i]` of the first; `old` has been told as the last of this one.
  void changeCommunicator(const comm::CommunicatorEvents& old, std::vector<int> ranks);
  /// Payload sent so far, in all communicators.
  std::uint64_t bytesSent(const comm::CommunicatorEvents& events) const {
    return before_.bytesSent + events.counters.bytesSent;
  }

 private:
  comm::EventCursor cursor_;  // told already
  std::uint64_t forgotten_ = 0;
  fabric::FabricCounters before_;  // of earlier communicators
  std::vector<int> ranks_;         // of the first one, by rank of this one; empty: they are equal
};

/// Adds the events, when there are any, and counters of how many were made and dropped.
void addTrace(wire::Network& network, const telemetry::Trace& trace);

}  // namespace faultline::workload

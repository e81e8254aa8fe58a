#pragma once

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// A moment in messages: monotonic nanoseconds.
inline nlohmann::json toJson(TimePoint moment) { return moment.time_since_epoch().count(); }

/// Tells what has happened on the network, in pieces: a job that is cut off has told what it knew.
class EventReport {
 public:
  /// Adds to a message the "failovers" and "failbacks" that no message has had yet, and the
  /// "counters" from the beginning on. `events` are those of one communicator, which only grow. A
  /// failover whose place is still being asked about waits for a later message, unless this is the
  /// last.
  void addNew(nlohmann::json& message, const comm::CommunicatorEvents& events, bool last);

 private:
  std::size_t failovers_ = 0;  // told already
  std::size_t failbacks_ = 0;
};

/// Adds "trace", one list per field of the events, when there are any; and how many were made and
/// dropped to "counters", which must be there. After addEvents.
void addTrace(nlohmann::json& message, const telemetry::Trace& trace);

}  // namespace faultline::workload

#pragma once

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// A moment in messages: monotonic nanoseconds.
inline nlohmann::json toJson(TimePoint moment) { return moment.time_since_epoch().count(); }

/// Adds "failovers", "failbacks" and "counters" to a message.
void addEvents(nlohmann::json& message, const comm::CommunicatorEvents& events);

/// Adds "trace", one list per field of the events, when there are any; and how many were made and
/// dropped to "counters", which must be there. After addEvents.
void addTrace(nlohmann::json& message, const telemetry::Trace& trace);

}  // namespace faultline::workload

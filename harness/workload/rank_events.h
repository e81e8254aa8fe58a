#pragma once

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// A moment in messages: monotonic nanoseconds.
inline nlohmann::json toJson(TimePoint moment) { return moment.time_since_epoch().count(); }

/// Adds "failovers", "failbacks" and "counters" to a message.
void addEvents(nlohmann::json& message, const comm::CommunicatorEvents& events);

}  // namespace faultline::workload

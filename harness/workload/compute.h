#pragma once

#include "base/clock.h"

namespace faultline::workload {

/// Passes the time until `moment` as a GPU would (the CPU is free for communication), or, with
/// `burn`, as a computation on the CPU. Returns at once when it is over.
void computeUntil(TimePoint moment, bool burn);

}  // namespace faultline::workload

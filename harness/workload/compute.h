#pragma once

#include "base/clock.h"

namespace faultline::workload {

/// Passes the time until `moment` as a GPU would (the CPU is free for communication), or, with
/// `burn`, as a computation on the CPU. Returns at once when it is over. Whoever sleeps here once
/// has no timer slack from then on: the kernel does not delay the thread's wakes to join them.
void computeUntil(TimePoint moment, bool burn);

}  // namespace faultline::workload

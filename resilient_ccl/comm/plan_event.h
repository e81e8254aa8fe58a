#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "resilient_ccl/comm/probe_lead.h"
#include "resilient_ccl/plan/health.h"
#include "resilient_ccl/plan/planner.h"

namespace faultline::comm {

/// A plan that a communicator uses from now on: one for each size of a collective that is planned,
/// and again for each when the health that it was made for has changed, and when another algorithm
/// is tried or kept.
struct PlanEvent {
  TimePoint when{};                ///< of the first call with it
  std::uint32_t communicator = 0;  ///< 1: of all processes
  std::uint64_t epoch = 0;         ///< changes of health before it: 0 until the first
  std::uint64_t operation = 0;     ///< number of that call among the communicator's collectives
  std::int64_t elements = 0;
  Bytes elementSize = 4;
  schedule::Collective collective = schedule::Collective::kAllReduce;
  plan::HealthVector health;  ///< of the communicator's ranks: what it was made for
  plan::LinkModel link;       ///< likewise, as measured at the start
  bool tried = false;         ///< for a few calls, to see how long they take: another event follows
  plan::Plan plan;            ///< algorithm, segments, predicted times, hash
};

/// A test of the ports of a communicator, told by its rank 0.
struct PortTestEvent {
  std::uint32_t communicator = 0;
  TestReport report;
};

}  // namespace faultline::comm

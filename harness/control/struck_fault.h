#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "harness/control/timeline.h"
#include "harness/scenario/scenario.h"
#include "injector/fault.h"

namespace faultline::run {

/// One time that a fault struck.
struct Strike {
  TimePoint applied{};
  Duration within{};                ///< all of it was surely there so long after that
  std::size_t firstTransition = 0;  ///< of the fault's transitions
  std::optional<TimePoint> ended;
  std::optional<TimePoint> recovered;  ///< an iteration that began after it was over
  std::optional<HitProof> hit;
  std::optional<injector::Evidence> evidence;
  std::set<int> endedLater;  ///< ranks that finished an iteration after it was applied
};

/// A fault of a run, and all that became of it so far.
struct StruckFault {
  scenario::Fault spec;
  FaultTrigger trigger;
  std::unique_ptr<injector::Fault> fault;
  std::vector<Strike> strikes;
  bool active = false;  ///< the last of them
  bool alone = false;   ///< as its kind's row says
};

/// The target node of a fault; faults without a target watch node 0.
inline int nodeOf(const scenario::Fault& fault) { return fault.target ? fault.target->node : 0; }

}  // namespace faultline::run

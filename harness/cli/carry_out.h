#pragma once

#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "harness/control/interrupt.h"
#include "injector/fault.h"

namespace faultline::cli {

/// What came of a fault that was put into something by hand.
struct Outcome {
  /// Why it could not be done, or, kUnavailable, has not lasted.
  Status status = okStatus();
  injector::Evidence evidence;  ///< where interrupted, what was there by then
  Duration lasted{};
  std::optional<TimePoint> ended;  ///< what it struck, before it was taken back
  bool interrupted = false;
  Status reverted = okStatus();
};

/// Applies it, unless it is interrupted already, lets it last and gathers evidence; reverts
/// whatever happens. `fault` is prepared.
Outcome carryOut(injector::Fault& fault, Duration duration, run::Interrupt& interrupt);

}  // namespace faultline::cli

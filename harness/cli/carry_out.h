#pragma once

#include <functional>
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

/// Prepares it, calls `prepared` (which may be empty), applies it, lets it last and gathers
/// evidence; reverts whatever happens. An interrupt ends each of these, also a `prepare` or `apply`
/// that takes long: what is not begun by then is not done.
Outcome carryOut(injector::Fault& fault, Duration duration, run::Interrupt& interrupt,
                 const std::function<void()>& prepared = {});

}  // namespace faultline::cli

#pragma once

#include <cstddef>

#include "base/status.h"
#include "injector/fault_table.h"

namespace faultline::injector {

/// The pure part of `throttle`: rates, and the probe stream that proves one.
struct ThrottlePlan {
  BitsPerSecond before = 0;
  BitsPerSecond after = 0;
  /// Measured rates within these bounds prove the throttle. The upper one is nearer to `after` than
  /// to `before`: what it lets through cannot be the unthrottled link.
  BitsPerSecond lowest_proof = 0;
  BitsPerSecond highest_proof = 0;
  Duration window{};            ///< shortest time over which the rate is measured
  std::size_t probe_frame = 0;  ///< bytes of payload of one probe frame
  Bytes probe_backlog = 0;      ///< how much of the probe stream is kept waiting in the queue
};

/// `parameter` is a Rate, or a Percent of `before`. kInvalidArgument when that is not slower.
Result<ThrottlePlan> planThrottle(BitsPerSecond before, const ParameterValue& parameter);

}  // namespace faultline::injector

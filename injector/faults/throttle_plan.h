#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/status.h"
#include "injector/fault_kind.h"
#include "injector/faults/backlog_meter.h"

namespace faultline::injector {

/// The pure part of `throttle`: rates, and the probe stream that proves one.
struct ThrottlePlan {
  BitsPerSecond before = 0;
  BitsPerSecond after = 0;
  /// Rates within these bounds are what was asked for: a half is told from a third.
  BitsPerSecond lowest_proof = 0;
  BitsPerSecond highest_proof = 0;
  /// Rates within these bounds are slower than before, and no more: a machine that is starved sends
  /// slowly, too. What is faster may be the link as it was; what is slower is another fault.
  BitsPerSecond lowest_slower = 0;
  BitsPerSecond highest_slower = 0;
  Duration window{};            ///< shortest time over which the rate is measured
  std::size_t probe_frame = 0;  ///< bytes of payload of one probe frame
  Bytes probe_backlog = 0;      ///< how much of the probe stream is kept waiting in the queue

  BacklogMeter meter() const { return BacklogMeter(window); }
};

/// `parameter` is a Rate, or a Percent of `before`. kInvalidArgument when that is not slower.
Result<ThrottlePlan> planThrottle(BitsPerSecond before, const ParameterValue& parameter);

/// What a measured rate proves.
enum class ThrottleProof { kNothing, kSlower, kAsAsked };
ThrottleProof proofOf(const ThrottlePlan& plan, const std::optional<MeasuredRate>& measured);

/// "92 Mbit/s left the queue during 60 ms with a backlog (asked: 100Mbit, before: 200Mbit)", or
/// that it proves less than that. `before_known`: the plan's is not a guess.
std::string inWords(const ThrottlePlan& plan, const std::optional<MeasuredRate>& measured,
                    bool before_known = true);

}  // namespace faultline::injector

#pragma once

#include <string_view>

#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::schedule {

/// What a message costs besides its data, in units of S/B (bytes per rank / healthy port).
struct MessageCost {
  double alpha = 0;       ///< latency; does not occupy the ports
  double perMessage = 0;  ///< time for which it occupies them
};

/// How many segments an algorithm should work in: the power of two, `most` at most (>= 1), for
/// which its time by closed form (docs/schedules.md) is least. A pipeline of k segments takes 1 +
/// 1/k of its load and k times what the messages of a segment cost, so that the best k is the root
/// of load / (messages x perMessage); where segments are lanes that share ports they bring nothing,
/// and the answer is 1. `request` says all but `segments`; it must be one that `makeSchedule`
/// accepts. Where messages cost nothing (both 0), the answer is the least number whose time is
/// within 1 % of that of `most`. `ports`: how the ports are shared. OptCC on ports that carry one
/// message at a time does not overlap its cycles: each then costs its latency and the messages of a
/// port with a shard.
int bestSegments(std::string_view algorithm, const ScheduleRequest& request,
                 const MessageCost& message, int most, PortModel ports = PortModel::kFluid);

}  // namespace faultline::schedule

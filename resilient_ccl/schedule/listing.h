#pragma once

#include <string>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// One operation in one line: "  3  send        to 2    [4, 8)        after 0.0:4", the last part
/// for each wait: lane.op:elements.
std::string describeOp(const Op& op, std::int64_t index);

/// One lane of one rank, a heading and a line per operation; at most `maxOps` of them, then a line
/// that says how many more there are. maxOps < 0: all.
std::string listLane(const Schedule& schedule, int rank, int lane, std::int64_t maxOps);

}  // namespace faultline::schedule

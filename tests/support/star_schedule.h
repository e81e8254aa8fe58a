#pragma once

#include <memory>

#include "resilient_ccl/schedule/split.h"
#include "tests/support/recorded_schedule.h"

namespace faultline {

/// An AllReduce in which each rank owns a part: all others send it theirs, it adds them up in the
/// order of their distance, and sends all of them the result. One lane.
inline std::unique_ptr<schedule::Schedule> starAllReduce(int ranks, std::int64_t elements) {
  using schedule::OpKind;
  auto star = std::make_unique<schedule::RecordedSchedule>(ranks, 1, elements);
  const auto part = [&](int owner) { return schedule::split({0, elements}, ranks, owner); };
  for (int self = 0; self < ranks; ++self) {
    auto& ops = star->at(self, 0);
    std::vector<schedule::Wait> last;
    for (int t = 1; t < ranks; ++t) {
      const int to = (self + t) % ranks, from = (self + ranks - t) % ranks;
      ops.push_back(schedule::makeOp(OpKind::kSend, to, part(to)));
      ops.push_back(schedule::makeOp(OpKind::kRecvReduce, from, part(self), last));
      last = {{.lane = 0, .op = std::ssize(ops) - 1, .count = part(self).count}};
    }
    for (int t = 1; t < ranks; ++t) {
      const int to = (self + t) % ranks, from = (self + ranks - t) % ranks;
      ops.push_back(schedule::makeOp(OpKind::kSend, to, part(self), last));
      ops.push_back(schedule::makeOp(OpKind::kRecv, from, part(from)));
    }
  }
  return star;
}

}  // namespace faultline

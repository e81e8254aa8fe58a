#include "resilient_ccl/schedule/shift_lanes.h"

#include <algorithm>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {

ShiftLanes::ShiftLanes(int ranks, Piece part, std::int64_t segments, int window, Shares shares)
    : ranks_(ranks),
      part_(part),
      segments_(std::clamp<std::int64_t>(part.count / ranks, 1, segments)),
      window_(window > 0 ? window : kSegmentsAhead * (ranks - 1)),
      shares_(std::move(shares)) {}

Piece ShiftLanes::segment(std::int64_t number) const { return split(part_, segments_, number); }

Piece ShiftLanes::shard(std::int64_t segment, int owner) const {
  return shares_.piece(this->segment(segment), owner);
}

ShiftLanes::Place ShiftLanes::placeOf(int position, bool contributes, std::int64_t index) const {
  const std::int64_t number = index / 2;
  Place place;
  place.segment = number / peers();
  place.step = 1 + number % peers();
  place.sends = (index % 2 == 0) == contributes;
  place.peer =
      static_cast<int>((position + (place.sends ? place.step : ranks_ - place.step)) % ranks_);
  place.owner = place.sends == contributes ? place.peer : position;
  return place;
}

void ShiftLanes::waitFor(Op& op, int position, bool contribution, std::int64_t index) const {
  if (index < 0) return;
  const Place place = placeOf(position, contribution, index);
  op.waits[at(op.waitCount++)] = {contribution ? contributionLane : resultLane, index,
                                  shard(place.segment, place.owner).count};
}

Op ShiftLanes::contributionOp(int position, std::int64_t index) const {
  const Place place = placeOf(position, true, index);
  Op op;
  op.peer = place.peer;
  op.piece = shard(place.segment, place.owner);
  if (place.sends) {
    op.kind = OpKind::kSend;
    waitFor(op, position, true, index - kSegmentsAhead * segmentOps());
    return op;
  }
  op.kind = OpKind::kRecvReduce;
  if (place.step > 1) op.after = index - 2;
  waitFor(op, position, true, index - 2 * window_);
  const std::int64_t older = place.segment - kSegmentsAhead;
  if (place.step == 1 && older >= 0) waitFor(op, position, false, resultReceive(older, peers()));
  return op;
}

Op ShiftLanes::resultOp(int position, std::int64_t index) const {
  const Place place = placeOf(position, false, index);
  Op op;
  op.peer = place.peer;
  op.piece = shard(place.segment, place.owner);
  if (place.sends) {
    op.kind = OpKind::kSend;
    if (place.step == 1) waitFor(op, position, true, lastReduction(place.segment));
    return op;
  }
  op.kind = OpKind::kRecv;
  waitFor(op, position, false, index - 2 * window_);
  return op;
}

}  // namespace faultline::schedule

#include "resilient_ccl/schedule/ring_lane.h"

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {

Op RingLane::op(int position, int lane, std::int64_t index) const {
  const std::int64_t step = index / 2;
  const bool receives = index % 2 == 0;
  Op result;
  if (receives) {
    result.kind = step < ranks - 1 ? OpKind::kRecvReduce : OpKind::kRecv;
    result.peer = (position + ranks - 1) % ranks;
    result.piece = chunk(position - step - 1);
    return result;
  }
  result.kind = OpKind::kSend;
  result.peer = (position + 1) % ranks;
  result.piece = chunk(position - step);
  if (step > 0) {
    const std::int64_t previousReceive = index - 3;
    result.waitCount = 1;
    result.waits[0] = {lane, previousReceive, result.piece.count};
  }
  return result;
}

Piece RingLane::chunk(std::int64_t number) const {
  const Piece whole = split(part, ranks, (number + 2 * static_cast<std::int64_t>(ranks)) % ranks);
  return split(whole, cuts, cut);
}

std::int64_t RingLane::lastReceiveOf(int position, std::int64_t chunk) const {
  if (opCount() == 0) return -1;
  // Step t receives chunk position-t-1; the all-gather has the steps from ranks-1 on and brings
  // every chunk but the one that is summed up here.
  const std::int64_t offset = (position - chunk + ranks) % ranks;
  const std::int64_t step = offset == ranks - 1 ? ranks - 2 : ranks - 1 + offset;
  return 2 * step;
}

std::int64_t RingLane::lastSendOf(int position, std::int64_t chunk) const {
  // Step t sends chunk position-t; the all-gather passes on every chunk but the last received.
  const std::int64_t offset = (position + 1 - chunk + ranks) % ranks;
  if (opCount() == 0 || offset == ranks - 1) return -1;
  return 2 * (ranks - 1 + offset) + 1;
}

}  // namespace faultline::schedule

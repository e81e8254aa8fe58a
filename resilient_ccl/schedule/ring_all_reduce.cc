#include "resilient_ccl/schedule/ring_all_reduce.h"

#include <cassert>

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

class RingAllReduce final : public Schedule {
 public:
  RingAllReduce(int ranks, std::int64_t elements, int lanes)
      : ranks_(ranks), elements_(elements), lanes_(lanes) {
    assert(ranks >= 1 && elements >= 0 && lanes >= 1);
  }

  std::string_view algorithm() const override { return "ring"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return lanes_; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int /*rank*/, int lane) const override {
    if (part(lane).count == 0) return 0;
    return 2 * steps();
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    const std::int64_t step = index / 2;
    const bool receives = index % 2 == 0;
    Op result;
    if (receives) {
      result.kind = step < ranks_ - 1 ? OpKind::kRecvReduce : OpKind::kRecv;
      result.peer = (rank + ranks_ - 1) % ranks_;
      result.piece = chunk(lane, rank - step - 1);
      return result;
    }
    result.kind = OpKind::kSend;
    result.peer = (rank + 1) % ranks_;
    result.piece = chunk(lane, rank - step);
    if (step > 0) {
      const std::int64_t previousReceive = index - 3;
      result.waitCount = 1;
      result.waits[0] = {lane, previousReceive, result.piece.count};
    }
    return result;
  }

 private:
  /// Of the ring: p-1 of the reduce-scatter and p-1 of the all-gather, each a receive and a send.
  std::int64_t steps() const { return 2 * (static_cast<std::int64_t>(ranks_) - 1); }

  Piece part(int lane) const { return split({0, elements_}, lanes_, lane); }

  /// Chunk `number` modulo the number of ranks; number > -2 * ranks.
  Piece chunk(int lane, std::int64_t number) const {
    return split(part(lane), ranks_, (number + 2 * static_cast<std::int64_t>(ranks_)) % ranks_);
  }

  int ranks_;
  std::int64_t elements_;
  int lanes_;
};

}  // namespace

std::unique_ptr<Schedule> ringAllReduce(int ranks, std::int64_t elements, int lanes) {
  return std::make_unique<RingAllReduce>(ranks, elements, lanes);
}

}  // namespace faultline::schedule

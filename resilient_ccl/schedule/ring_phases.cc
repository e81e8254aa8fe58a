#include "resilient_ccl/schedule/ring_phases.h"

#include <cassert>

#include "resilient_ccl/schedule/ring_lane.h"

namespace faultline::schedule {
namespace {

class RingPhase final : public Schedule {
 public:
  RingPhase(Collective collective, int ranks, std::int64_t elements, int lanes)
      : collective_(collective), ranks_(ranks), elements_(elements), lanes_(lanes) {
    assert(ranks >= 1 && elements >= 0 && lanes >= 1);
  }

  std::string_view algorithm() const override {
    return scatters() ? "ring_reduce_scatter" : "ring_all_gather";
  }
  Collective collective() const override { return collective_; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return lanes_; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int /*rank*/, int lane) const override { return ring(lane).opCount() / 2; }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    // Position q of the ring sums up chunk q+1: that rank's block.
    const std::int64_t skipped = scatters() ? 0 : opCount(rank, lane);
    Op op = ring(lane).op((rank + ranks_ - 1) % ranks_, lane, index + skipped);
    op.peer = (op.peer + 1) % ranks_;
    if (op.waitCount > 0) {
      op.waits[0].op -= skipped;
      if (op.waits[0].op < 0) op.waitCount = 0;  // the rank's own block, there from the beginning
    }
    return op;
  }

 private:
  bool scatters() const { return collective_ == Collective::kReduceScatter; }
  RingLane ring(int lane) const { return {ranks_, {0, elements_}, lanes_, lane}; }

  Collective collective_;
  int ranks_;
  std::int64_t elements_;
  int lanes_;
};

}  // namespace

std::unique_ptr<Schedule> ringReduceScatter(int ranks, std::int64_t elements, int lanes) {
  return std::make_unique<RingPhase>(Collective::kReduceScatter, ranks, elements, lanes);
}

std::unique_ptr<Schedule> ringAllGather(int ranks, std::int64_t elements, int lanes) {
  return std::make_unique<RingPhase>(Collective::kAllGather, ranks, elements, lanes);
}

}  // namespace faultline::schedule

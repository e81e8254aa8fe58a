#include "resilient_ccl/schedule/ring_all_reduce.h"

#include <cassert>

#include "resilient_ccl/schedule/ring_lane.h"
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

  std::int64_t opCount(int /*rank*/, int lane) const override { return ring(lane).opCount(); }
  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    return ring(lane).op(rank, lane, index);
  }

 private:
  RingLane ring(int lane) const { return {ranks_, split({0, elements_}, lanes_, lane)}; }

  int ranks_;
  std::int64_t elements_;
  int lanes_;
};

}  // namespace

std::unique_ptr<Schedule> ringAllReduce(int ranks, std::int64_t elements, int lanes) {
  return std::make_unique<RingAllReduce>(ranks, elements, lanes);
}

}  // namespace faultline::schedule

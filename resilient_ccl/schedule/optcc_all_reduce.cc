#include "resilient_ccl/schedule/optcc_all_reduce.h"

#include <array>
#include <cassert>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/shift_lanes.h"
#include "resilient_ccl/schedule/step_view.h"

namespace faultline::schedule {
namespace {

class OptccAllReduce final : public Schedule, public StepView {
 public:
  OptccAllReduce(int ranks, std::int64_t elements, int segments, int window, Shares shares)
      : ranks_(ranks),
        elements_(elements),
        shift_(ranks, {0, elements}, segments, window, std::move(shares)) {
    assert(ranks >= 1 && elements >= 0 && segments >= 1 && window >= 0);
  }

  std::string_view algorithm() const override { return "optcc"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return 2; }
  std::int64_t elements() const override { return elements_; }
  std::int64_t opCount(int /*rank*/, int /*lane*/) const override { return shift_.opCount(); }
  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    return lane == shift_.contributionLane ? shift_.contributionOp(rank, index)
                                           : shift_.resultOp(rank, index);
  }

  std::span<const int> layers() const override { return kLayers; }
  const StepView* stepView() const override { return this; }
  /// Results of a segment go with the contributions of the next one.
  std::int64_t cycles() const override { return shift_.segments() + 1; }
  void contributions(std::int64_t cycle, std::span<std::int64_t> elements) const override {
    fill(cycle, elements);
  }
  void results(std::int64_t cycle, std::span<std::int64_t> elements) const override {
    fill(cycle - 1, elements);
  }

 private:
  static constexpr std::array kLayers{0, 1};  // contributions, results

  void fill(std::int64_t segment, std::span<std::int64_t> elements) const {
    const bool exists = 0 <= segment && segment < shift_.segments() && ranks_ > 1;
    for (int rank = 0; rank < ranks_; ++rank) {
      elements[at(rank)] = exists ? shift_.shard(segment, rank).count : 0;
    }
  }

  int ranks_;
  std::int64_t elements_;
  ShiftLanes shift_;
};

}  // namespace

std::unique_ptr<Schedule> optccAllReduce(int ranks, std::int64_t elements, int segments, int window,
                                         Shares shares) {
  return std::make_unique<OptccAllReduce>(ranks, elements, segments, window, std::move(shares));
}

}  // namespace faultline::schedule

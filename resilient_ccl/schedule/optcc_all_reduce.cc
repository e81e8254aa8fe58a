#include "resilient_ccl/schedule/optcc_all_reduce.h"

#include <algorithm>
#include <cassert>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/split.h"
#include "resilient_ccl/schedule/step_view.h"

namespace faultline::schedule {
namespace {

/// Segments by which contributions may be ahead of results: what is in flight stays bounded.
constexpr std::int64_t kSegmentsAhead = 3;

class OptccAllReduce final : public Schedule, public StepView {
 public:
  OptccAllReduce(int ranks, std::int64_t elements, int segments, int window, Shares shares)
      : ranks_(ranks),
        elements_(elements),
        segments_(std::clamp<std::int64_t>(elements / ranks, 1, segments)),
        window_(window > 0 ? window : kSegmentsAhead * (ranks - 1)),
        shares_(std::move(shares)) {
    assert(ranks >= 1 && elements >= 0 && segments >= 1 && window >= 0);
    assert(shares_.count() == ranks);
  }

  std::string_view algorithm() const override { return "optcc"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return 2; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int /*rank*/, int /*lane*/) const override {
    return elements_ == 0 ? 0 : segments_ * segmentOps();
  }

  const StepView* stepView() const override { return this; }
  /// Results of a segment go with the contributions of the next one.
  std::int64_t cycles() const override { return segments_ + 1; }
  void contributions(std::int64_t cycle, std::span<std::int64_t> elements) const override {
    fill(cycle, elements);
  }
  void results(std::int64_t cycle, std::span<std::int64_t> elements) const override {
    fill(cycle - 1, elements);
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    const Place place = placeOf(rank, lane, index);
    Op op;
    op.peer = place.peer;
    op.piece = shard(place);
    if (lane == kContributions && place.sends) {
      op.kind = OpKind::kSend;
      waitFor(op, rank, lane, index - kSegmentsAhead * segmentOps());
    } else if (lane == kContributions) {
      op.kind = OpKind::kRecvReduce;
      if (place.step > 1) op.after = index - 2;
      waitFor(op, rank, lane, index - 2 * window_);
      const std::int64_t older = place.segment - kSegmentsAhead;
      if (place.step == 1) waitFor(op, rank, kResults, (older + 1) * segmentOps() - 2);
    } else if (place.sends) {
      op.kind = OpKind::kSend;
      const std::int64_t lastReduction = (place.segment + 1) * segmentOps() - 1;
      if (place.step == 1) waitFor(op, rank, kContributions, lastReduction);
    } else {
      op.kind = OpKind::kRecv;
      waitFor(op, rank, lane, index - 2 * window_);
    }
    return op;
  }

 private:
  static constexpr int kContributions = 0;
  static constexpr int kResults = 1;

  struct Place {
    std::int64_t segment = 0;
    std::int64_t step = 0;  ///< macro step in the segment, from 1
    bool sends = false;
    int peer = 0;
    int owner = 0;  ///< of the shard that is moved
  };

  /// The number counts macro steps. Contributions: S0 R0 S1 R1 ...; results: R0 S0 R1 S1 ..., so
  /// that who waits for its own shard already receives.
  Place placeOf(int rank, int lane, std::int64_t index) const {
    const std::int64_t number = index / 2;
    Place place;
    place.segment = number / peers();
    place.step = 1 + number % peers();
    place.sends = (index % 2 == 0) == (lane == kContributions);
    place.peer =
        static_cast<int>((rank + (place.sends ? place.step : ranks_ - place.step)) % ranks_);
    place.owner = place.sends == (lane == kContributions) ? place.peer : rank;
    return place;
  }

  void fill(std::int64_t segment, std::span<std::int64_t> elements) const {
    const bool exists = 0 <= segment && segment < segments_;
    for (int rank = 0; rank < ranks_; ++rank) {
      elements[at(rank)] =
          exists && ranks_ > 1 ? shard({.segment = segment, .owner = rank}).count : 0;
    }
  }

  /// Macro steps of a segment.
  std::int64_t peers() const { return ranks_ - 1; }
  std::int64_t segmentOps() const { return 2 * peers(); }
  Piece shard(const Place& place) const {
    return shares_.piece(split({0, elements_}, segments_, place.segment), place.owner);
  }

  /// Adds a wait for all of another operation of the rank, if there is such an operation.
  void waitFor(Op& op, int rank, int lane, std::int64_t index) const {
    if (index < 0) return;
    op.waits[static_cast<std::size_t>(op.waitCount++)] = {lane, index,
                                                          shard(placeOf(rank, lane, index)).count};
  }

  int ranks_;
  std::int64_t elements_;
  std::int64_t segments_;
  std::int64_t window_;
  Shares shares_;
};

}  // namespace

std::unique_ptr<Schedule> optccAllReduce(int ranks, std::int64_t elements, int segments, int window,
                                         Shares shares) {
  return std::make_unique<OptccAllReduce>(ranks, elements, segments, window, std::move(shares));
}

}  // namespace faultline::schedule

#pragma once

#include "resilient_ccl/schedule/schedule.h"
#include "resilient_ccl/schedule/shares.h"

namespace faultline::schedule {

/// The two lanes of `optccAllReduce` for one piece of the buffer, among `ranks` positions that
/// count from 0; so do the peers of operations. The lanes' numbers are up to the caller.
class ShiftLanes {
 public:
  /// `window` 0: three receives of a kind from every peer.
  ShiftLanes(int ranks, Piece part, std::int64_t segments, int window, Shares shares);

  std::int64_t segments() const { return segments_; }
  /// Of either lane.
  std::int64_t opCount() const { return part_.count == 0 ? 0 : segments_ * segmentOps(); }
  Op contributionOp(int position, std::int64_t index) const;
  Op resultOp(int position, std::int64_t index) const;

  /// Lanes that the operations' waits name.
  int contributionLane = 0;
  int resultLane = 1;

  Piece segment(std::int64_t number) const;
  /// What `owner` reduces of a segment.
  Piece shard(std::int64_t segment, int owner) const;
  /// Index, in the lane of contributions, of the last reduction of a segment; it is done when the
  /// position's own shard is finished.
  std::int64_t lastReduction(std::int64_t segment) const {
    return (segment + 1) * segmentOps() - 1;
  }
  /// Index, in the lane of results, of the receive in macro step `step` = 1..ranks-1: the shard of
  /// position - step.
  std::int64_t resultReceive(std::int64_t segment, std::int64_t step) const {
    return segment * segmentOps() + 2 * (step - 1);
  }

 private:
  struct Place {
    std::int64_t segment = 0;
    std::int64_t step = 0;  ///< macro step in the segment, from 1
    bool sends = false;
    int peer = 0;
    int owner = 0;  ///< of the shard that is moved
  };
  /// The number counts macro steps. Contributions: S0 R0 S1 R1 ...; results: R0 S0 R1 S1 ..., so
  /// that who waits for its own shard already receives.
  Place placeOf(int position, bool contributes, std::int64_t index) const;
  /// Macro steps of a segment.
  std::int64_t peers() const { return ranks_ - 1; }
  std::int64_t segmentOps() const { return 2 * peers(); }
  /// Adds a wait for all of another operation of the position, if there is such an operation.
  void waitFor(Op& op, int position, bool contribution, std::int64_t index) const;

  int ranks_;
  Piece part_;
  std::int64_t segments_;
  std::int64_t window_;
  Shares shares_;
};

/// Segments by which contributions may be ahead of results: what is in flight stays bounded.
inline constexpr std::int64_t kSegmentsAhead = 3;

}  // namespace faultline::schedule

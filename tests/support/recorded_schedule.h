#pragma once

#include <string>
#include <vector>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// A schedule written out operation by operation, so that tests can build odd ones and break good
/// ones.
class RecordedSchedule final : public Schedule {
 public:
  RecordedSchedule(int ranks, int lanes, std::int64_t elements)
      : ranks_(ranks),
        lanes_(lanes),
        elements_(elements),
        ops_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(lanes)) {}

  explicit RecordedSchedule(const Schedule& original)
      : RecordedSchedule(original.ranks(), original.lanes(), original.elements()) {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int lane = 0; lane < lanes_; ++lane) {
        for (std::int64_t i = 0; i < original.opCount(rank, lane); ++i) {
          at(rank, lane).push_back(original.op(rank, lane, i));
        }
      }
    }
    laneOrder.assign(original.layers().begin(), original.layers().end());
  }

  std::string_view algorithm() const override { return "recorded"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return lanes_; }
  std::int64_t elements() const override { return elements_; }
  std::int64_t opCount(int rank, int lane) const override {
    return static_cast<std::int64_t>(ops_[index(rank, lane)].size());
  }
  Op op(int rank, int lane, std::int64_t i) const override {
    return ops_[index(rank, lane)].at(static_cast<std::size_t>(i));
  }

  std::span<const int> layers() const override { return laneOrder; }

  std::vector<Op>& at(int rank, int lane) { return ops_[index(rank, lane)]; }

  /// What `layers` says.
  std::vector<int> laneOrder;

 private:
  std::size_t index(int rank, int lane) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(lanes_) +
           static_cast<std::size_t>(lane);
  }

  int ranks_;
  int lanes_;
  std::int64_t elements_;
  std::vector<std::vector<Op>> ops_;
};

inline Op makeOp(OpKind kind, int peer, Piece piece, const std::vector<Wait>& waits = {}) {
  Op op;
  op.kind = kind;
  op.peer = peer;
  op.piece = piece;
  for (const Wait& wait : waits) op.waits[static_cast<std::size_t>(op.waitCount++)] = wait;
  return op;
}

}  // namespace faultline::schedule

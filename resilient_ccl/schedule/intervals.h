#pragma once

#include <unordered_map>
#include <vector>

#include "resilient_ccl/schedule/op_table.h"
#include "resilient_ccl/schedule/proof_work.h"

namespace faultline::schedule {

/// The buffer cut at every boundary of every piece: inside one interval all elements share one
/// fate, so that checking an interval checks its elements. Where data moves to another offset, the
/// cuts move along: the intervals of both ends of a message correspond one to one.
class Intervals {
 public:
  /// `cuts`: further boundaries. What moves data by a little has many cuts, up to one for each
  /// element. When the work is over there is no use for it. `room`: of the boundaries.
  Intervals(const OpTable& table, const std::vector<std::int64_t>& cuts, ProofWork& work,
            ProofTable& room);

  int count() const { return static_cast<int>(bounds_.size()) - 1; }
  /// The elements of interval `index`.
  Piece piece(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return {bounds_[i], bounds_[i + 1] - bounds_[i]};
  }
  /// The intervals [first, end) that make up the piece of operation `op`.
  int first(int op) const { return first_[static_cast<std::size_t>(op)]; }
  int end(int op) const { return end_[static_cast<std::size_t>(op)]; }
  /// The first interval of a copy's source; they correspond one to one to those of its piece.
  int firstSource(int op) const { return firstSource_.at(op); }

 private:
  std::vector<std::int64_t> bounds_;
  std::vector<int> first_;
  std::vector<int> end_;
  std::unordered_map<int, int> firstSource_;  ///< of copies

  /// Boundaries inside what is moved to another place, at that place; whether there were new ones.
  bool addMoved(const OpTable& table, ProofWork& work, ProofTable& room);
  void tidy();
};

}  // namespace faultline::schedule

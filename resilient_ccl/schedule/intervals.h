#pragma once

#include <vector>

#include "resilient_ccl/schedule/op_table.h"

namespace faultline::schedule {

/// The buffer cut at every boundary of every piece: inside one interval all elements share one
/// fate, so that checking an interval checks its elements.
class Intervals {
 public:
  explicit Intervals(const OpTable& table);

  int count() const { return static_cast<int>(bounds_.size()) - 1; }
  /// The elements of interval `index`.
  Piece piece(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return {bounds_[i], bounds_[i + 1] - bounds_[i]};
  }
  /// The intervals [first, end) that make up the piece of operation `op`.
  int first(int op) const { return first_[static_cast<std::size_t>(op)]; }
  int end(int op) const { return end_[static_cast<std::size_t>(op)]; }

 private:
  std::vector<std::int64_t> bounds_;
  std::vector<int> first_;
  std::vector<int> end_;
};

}  // namespace faultline::schedule

#include "resilient_ccl/schedule/intervals.h"

#include <algorithm>

namespace faultline::schedule {

Intervals::Intervals(const OpTable& table) {
  bounds_ = {0, table.elements()};
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    bounds_.push_back(entry.piece.offset);
    bounds_.push_back(entry.piece.offset + entry.piece.count);
    if (entry.kind == OpKind::kCopy) {
      bounds_.push_back(entry.source.offset);
      bounds_.push_back(entry.source.offset + entry.source.count);
    }
  }
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());

  const auto indexOf = [&](std::int64_t bound) {
    return static_cast<int>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) -
                            bounds_.begin());
  };
  for (int op = 0; op < table.size(); ++op) {
    const Piece& piece = table[op].piece;
    first_.push_back(indexOf(piece.offset));
    end_.push_back(indexOf(piece.offset + piece.count));
  }
}

}  // namespace faultline::schedule

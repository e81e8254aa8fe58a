#include "resilient_ccl/schedule/intervals.h"

#include <algorithm>

namespace faultline::schedule {
namespace {

constexpr std::int64_t kStepsOfCut = 32;
constexpr std::int64_t kStepsOfSorting = 32;
constexpr auto kBytesOfCut = static_cast<std::int64_t>(sizeof(std::int64_t));

void sortUnique(std::vector<std::int64_t>& all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

}  // namespace

Intervals::Intervals(const OpTable& table, const std::vector<std::int64_t>& cuts, ProofWork& work,
                     ProofTable& room)
    : bounds_(cuts) {
  bounds_.insert(bounds_.end(), {0, table.elements()});
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    bounds_.push_back(entry.piece.offset);
    bounds_.push_back(entry.piece.offset + entry.piece.count);
    if (entry.kind == OpKind::kCopy) {
      bounds_.push_back(entry.source.offset);
      bounds_.push_back(entry.source.offset + entry.source.count);
    }
  }
  tidy();
  while (addMoved(table, work, room)) {
  }
  if (work.isOver()) bounds_.resize(1);

  const auto indexOf = [&](std::int64_t bound) {
    return static_cast<int>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) -
                            bounds_.begin());
  };
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    first_.push_back(indexOf(entry.piece.offset));
    end_.push_back(indexOf(entry.piece.offset + entry.piece.count));
    if (entry.kind == OpKind::kCopy) firstSource_[op] = indexOf(entry.source.offset);
  }
}

bool Intervals::addMoved(const OpTable& table, ProofWork& work, ProofTable& room) {
  std::vector<std::int64_t> moved;
  const auto most = room.most() / kBytesOfCut;
  const auto mapCuts = [&](Piece from, Piece to) {
    auto bound = std::upper_bound(bounds_.begin(), bounds_.end(), from.offset);
    for (; bound != bounds_.end() && *bound < from.offset + from.count; ++bound) {
      const std::int64_t there = *bound - from.offset + to.offset;
      if (!work.spend(kStepsOfCut)) return;
      if (!std::binary_search(bounds_.begin(), bounds_.end(), there)) moved.push_back(there);
      if (std::ssize(moved) / 2 <= most) continue;
      sortUnique(moved);  // operations of one place move the same cuts
      if (!room.fits((std::ssize(bounds_) + std::ssize(moved)) * kBytesOfCut)) return;
    }
  };
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    if (isReceive(entry.kind)) continue;
    const Piece from = entry.kind == OpKind::kCopy ? entry.source : entry.piece;
    const Piece to = entry.kind == OpKind::kCopy ? entry.piece : table[entry.partner].piece;
    if (from.offset == to.offset) continue;
    mapCuts(from, to);
    mapCuts(to, from);
    if (work.isOver()) return false;
  }
  work.spend(kStepsOfSorting * static_cast<std::int64_t>(bounds_.size() + moved.size()));
  bounds_.insert(bounds_.end(), moved.begin(), moved.end());
  tidy();
  return room.fits(std::ssize(bounds_) * kBytesOfCut) && !moved.empty();
}

void Intervals::tidy() { sortUnique(bounds_); }

}  // namespace faultline::schedule

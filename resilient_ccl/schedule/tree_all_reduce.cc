#include "resilient_ccl/schedule/tree_all_reduce.h"

#include <bit>
#include <cassert>

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

class TreeAllReduce final : public Schedule {
 public:
  TreeAllReduce(int ranks, std::int64_t elements, int segments)
      : ranks_(ranks), elements_(elements), segments_(segments) {
    assert(ranks >= 1 && elements >= 0 && segments >= 1);
  }

  std::string_view algorithm() const override { return "tree"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return segments_; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int rank, int lane) const override {
    if (part(lane).count == 0 || ranks_ == 1) return 0;
    return 2 * (children(rank) + (rank == 0 ? 0 : 1));
  }

  /// Reductions of the children, to the parent, from the parent, to the children (the last and
  /// deepest first).
  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    const std::int64_t inner = children(rank);
    const bool isRoot = rank == 0;
    Op op;
    op.piece = part(lane);
    if (index < inner) {
      op.kind = OpKind::kRecvReduce;
      op.peer = rank + (1 << index);
      if (index > 0) op.after = index - 1;
      return op;
    }
    const std::int64_t afterSums = index - inner;
    std::int64_t waited = inner - 1;
    if (!isRoot && afterSums == 0) {
      op.kind = OpKind::kSend;
      op.peer = rank & (rank - 1);
    } else if (!isRoot && afterSums == 1) {
      // Granted when the sum has been sent: the result overwrites it.
      op.kind = OpKind::kRecv;
      op.peer = rank & (rank - 1);
      waited = inner;
    } else {
      const std::int64_t child = inner - 1 - (afterSums - (isRoot ? 0 : 2));
      op.kind = OpKind::kSend;
      op.peer = rank + (1 << child);
      if (!isRoot) waited = inner + 1;
    }
    if (waited >= 0) {
      op.waits[0] = {lane, waited, op.piece.count};
      op.waitCount = 1;
    }
    return op;
  }

 private:
  /// Ranks r + 2^i that send their sums to r.
  int children(int rank) const {
    const int most = rank == 0 ? std::bit_width(static_cast<unsigned>(ranks_))
                               : std::countr_zero(static_cast<unsigned>(rank));
    int count = 0;
    while (count < most && rank + (1 << count) < ranks_) ++count;
    return count;
  }
  Piece part(int lane) const { return split({0, elements_}, segments_, lane); }

  int ranks_;
  std::int64_t elements_;
  int segments_;
};

}  // namespace

std::unique_ptr<Schedule> treeAllReduce(int ranks, std::int64_t elements, int segments) {
  return std::make_unique<TreeAllReduce>(ranks, elements, segments);
}

}  // namespace faultline::schedule

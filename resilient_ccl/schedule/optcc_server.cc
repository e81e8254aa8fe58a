#include "resilient_ccl/schedule/optcc_server.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/shift_lanes.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

class OptccServer final : public Schedule {
 public:
  OptccServer(int nodes, int ranksPerNode, std::int64_t elements, int segments, int window,
              const Shares& shares)
      : nodes_(nodes), perNode_(ranksPerNode), elements_(elements) {
    assert(nodes >= 1 && ranksPerNode >= 1 && elements >= nodes * ranksPerNode);
    assert(segments >= 1 && window >= 0 && shares.count() == nodes);
    // Equal for all parts, though these may differ by an element.
    segments_ = std::clamp<std::int64_t>(elements / ranksPerNode / nodes, 1, segments);
    for (int part = 0; part < ranksPerNode; ++part) {
      parts_.emplace_back(nodes, split({0, elements}, ranksPerNode, part), segments_, window,
                          shares);
      parts_.back().contributionLane = kAcrossContributions;
      parts_.back().resultLane = kAcrossResults;
    }
  }

  std::string_view algorithm() const override { return "optcc_server"; }
  int ranks() const override { return nodes_ * perNode_; }
  int lanes() const override { return 4; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int rank, int lane) const override {
    if (lane == kInsideSums) return segments_ * sumOps();
    if (lane == kInsideResults) return segments_ * nodes_ * sumOps();
    return parts_[at(numberOf(rank))].opCount();
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    if (lane == kInsideSums) return insideSum(rank, index);
    if (lane == kInsideResults) return insideResult(rank, index);
    const ShiftLanes& part = parts_[at(numberOf(rank))];
    Op op = lane == kAcrossResults ? part.resultOp(nodeOf(rank), index)
                                   : part.contributionOp(nodeOf(rank), index);
    op.peer = op.peer * perNode_ + numberOf(rank);
    const std::int64_t segmentOps = part.opCount() / segments_;
    // The first contribution of a segment; the lane's order holds back the others with it.
    if (lane == kAcrossContributions && index % segmentOps == 0) {
      waitForSum(op, rank, index / segmentOps);
    }
    return op;
  }

  std::span<const int> layers() const override { return kLayers; }

 private:
  static constexpr int kInsideSums = 0;
  static constexpr int kInsideResults = 1;
  static constexpr int kAcrossContributions = 2;
  static constexpr int kAcrossResults = 3;
  static constexpr std::array kLayers{kInsideSums, kAcrossContributions, kAcrossResults,
                                      kInsideResults};

  int nodeOf(int rank) const { return rank / perNode_; }
  /// Of the rank in its node, and of the part in which it is at home.
  int numberOf(int rank) const { return rank % perNode_; }
  /// The rank of the same node whose number is `shift` more.
  int local(int rank, std::int64_t shift) const {
    return nodeOf(rank) * perNode_ +
           static_cast<int>((numberOf(rank) + shift + perNode_) % perNode_);
  }
  /// Operations of a rank in which all others of its node take part once.
  std::int64_t sumOps() const { return 2 * (static_cast<std::int64_t>(perNode_) - 1); }
  Piece segmentOf(int rank, std::int64_t segment) const {
    return parts_[at(numberOf(rank))].segment(segment);
  }

  void waitForSum(Op& op, int rank, std::int64_t segment) const {
    if (perNode_ == 1) return;
    op.waits[at(op.waitCount++)] = {kInsideSums, (segment + 1) * sumOps() - 1,
                                    segmentOf(rank, segment).count};
  }

  /// S0 R0 S1 R1 ...: to the homes of the segments, and from those who are not at home in mine.
  Op insideSum(int rank, std::int64_t index) const {
    const std::int64_t segment = index / sumOps();
    const std::int64_t step = 1 + index % sumOps() / 2;
    const std::int64_t older = segment - kSegmentsAhead;
    Op op;
    if (index % 2 == 0) {
      op.kind = OpKind::kSend;
      op.peer = local(rank, step);
      op.piece = segmentOf(op.peer, segment);
      return op;
    }
    op.kind = OpKind::kRecvReduce;
    op.peer = local(rank, -step);
    op.piece = segmentOf(rank, segment);
    if (step > 1) {
      op.after = index - 2;
    } else if (older >= 0 && nodes_ > 1) {
      const ShiftLanes& part = parts_[at(numberOf(rank))];
      const int owner = (nodeOf(rank) + 1) % nodes_;  // the last to be heard
      op.waits[at(op.waitCount++)] = {kAcrossResults, part.resultReceive(older, nodes_ - 1),
                                      part.shard(older, owner).count};
    }
    return op;
  }

  /// R0 S0 R1 S1 ... for every shard of a segment, in the order in which they are finished: the
  /// node's own, then those that come from other nodes.
  Op insideResult(int rank, std::int64_t index) const {
    const std::int64_t shardNumber = index / sumOps();
    const std::int64_t segment = shardNumber / nodes_;
    const std::int64_t step = shardNumber % nodes_;  // 0: the own shard
    const int owner = static_cast<int>((nodeOf(rank) + nodes_ - step) % nodes_);
    const std::int64_t shift = 1 + index % sumOps() / 2;
    Op op;
    if (index % 2 == 0) {
      op.kind = OpKind::kRecv;
      op.peer = local(rank, -shift);
      op.piece = parts_[at(numberOf(op.peer))].shard(segment, owner);
      return op;
    }
    const ShiftLanes& part = parts_[at(numberOf(rank))];
    op.kind = OpKind::kSend;
    op.peer = local(rank, shift);
    op.piece = part.shard(segment, owner);
    if (shift > 1) return op;  // the lane's order has held it back with the first
    if (nodes_ == 1) {
      waitForSum(op, rank, segment);
    } else {
      const int lane = step == 0 ? kAcrossContributions : kAcrossResults;
      const std::int64_t waited =
          step == 0 ? part.lastReduction(segment) : part.resultReceive(segment, step);
      op.waits[at(op.waitCount++)] = {lane, waited, op.piece.count};
    }
    return op;
  }

  int nodes_;
  int perNode_;
  std::int64_t elements_;
  std::int64_t segments_ = 1;
  std::vector<ShiftLanes> parts_;
};

}  // namespace

std::unique_ptr<Schedule> optccServer(int nodes, int ranksPerNode, std::int64_t elements,
                                      int segments, int window, const Shares& shares) {
  return std::make_unique<OptccServer>(nodes, ranksPerNode, elements, segments, window, shares);
}

}  // namespace faultline::schedule

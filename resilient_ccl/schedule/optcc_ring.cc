#include "resilient_ccl/schedule/optcc_ring.h"

#include <algorithm>
#include <cassert>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

/// Results that the straggler has granted at a time.
constexpr std::int64_t kStragglerWindow = 3;

class OptccRing final : public Schedule {
 public:
  OptccRing(int ranks, std::int64_t elements, int segments, int straggler)
      : ring_(ranks - 1), elements_(elements), straggler_(straggler) {
    assert(ranks >= 3 && elements >= 0 && segments >= 1 && 0 <= straggler && straggler < ranks);
    chunks_ = ring_ * std::clamp<std::int64_t>(elements / ring_, 1, segments);
  }

  std::string_view algorithm() const override { return "optcc_r2"; }
  int ranks() const override { return ring_ + 1; }
  int lanes() const override { return 2; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int rank, int /*lane*/) const override {
    if (elements_ == 0) return 0;
    return rank == straggler_ ? chunks_ : 2 * macroSteps();
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    if (rank == straggler_) return stragglerOp(lane, index);
    const int position = (rank - straggler_ - 1 + ranks()) % ranks();
    // R0 R1 S0 R2 S1 ... S(last): a receive is granted one macro step ahead.
    const bool isLast = index == 2 * macroSteps() - 1;
    const bool receives = index == 0 || (index % 2 == 1 && !isLast);
    const std::int64_t step = receives ? (index + 1) / 2
                              : isLast ? macroSteps() - 1
                                       : index / 2 - 1;
    if (lane == kReduce) return receives ? receiveSum(position, step) : sendSum(position, step);
    return receives ? receiveResult(position, step) : sendResult(position, step);
  }

  std::span<const int> layers() const override { return kLayers; }

 private:
  static constexpr int kReduce = 0;
  static constexpr int kSpread = 1;
  static constexpr std::array kLayers{kReduce, kSpread};

  std::int64_t macroSteps() const { return chunks_ + 2 * ring_; }
  bool exists(std::int64_t chunk) const { return 0 <= chunk && chunk < chunks_; }
  Piece piece(std::int64_t chunk) const {
    return exists(chunk) ? split({0, elements_}, chunks_, chunk) : Piece{};
  }
  std::int64_t onRing(std::int64_t position) const { return (position % ring_ + ring_) % ring_; }
  int rankAt(std::int64_t position) const {
    return static_cast<int>((onRing(position) + straggler_ + 1) % ranks());
  }
  /// e of a chunk.
  std::int64_t residue(std::int64_t chunk) const { return chunk % (ring_ - 1); }
  /// The chunk that position `sender` sends in a macro step, `lag` steps after chunks set out; may
  /// not exist. The sender must not be at the gap.
  std::int64_t chunkSent(std::int64_t sender, std::int64_t step, std::int64_t lag) const {
    const std::int64_t newest = step - lag;
    const std::int64_t e = onRing(sender - step);
    const std::int64_t period = ring_ - 1;
    return newest - ((newest - e) % period + period) % period;
  }
  bool gapBefore(std::int64_t position, std::int64_t step) const {
    return onRing(position - step) == 0;
  }
  bool gapBehind(std::int64_t position, std::int64_t step) const {
    return gapBefore(position + 1, step);
  }
  static constexpr std::int64_t kReduceLag = 2;
  std::int64_t spreadLag() const { return ring_ + 1; }

  static void waitFor(Op& op, int lane, std::int64_t index) {
    op.waits[at(op.waitCount++)] = {lane, index, op.piece.count};
  }
  /// Index of the receive of a macro step in its lane.
  static std::int64_t receiveIn(std::int64_t step) { return step == 0 ? 0 : 2 * step - 1; }
  /// Where the gap is nothing happens.
  static Op nothing() {
    Op op;
    op.kind = OpKind::kCopy;
    return op;
  }

  Op stragglerOp(int lane, std::int64_t chunk) const {
    Op op;
    op.kind = lane == kReduce ? OpKind::kSend : OpKind::kRecv;
    op.peer = rankAt(lane == kReduce ? chunk : chunk - 1);
    op.piece = piece(chunk);
    if (lane == kSpread && chunk >= kStragglerWindow) {
      const std::int64_t before = chunk - kStragglerWindow;
      op.waitCount = 1;
      op.waits[0] = {lane, before, piece(before).count};
    }
    return op;
  }

  Op receiveSum(int position, std::int64_t step) const {
    Op op;
    op.kind = OpKind::kRecvReduce;
    if (gapBefore(position, step)) {
      if (!exists(step)) return nothing();
      op.peer = straggler_;
      op.piece = piece(step);
      return op;
    }
    const std::int64_t chunk = chunkSent(position - 1, step, kReduceLag);
    op.peer = rankAt(position - 1);
    op.piece = piece(chunk);
    if (exists(chunk) && onRing(chunk) == position)
      op.after = receiveIn(chunk);  // the straggler's part
    return op;
  }

  Op sendSum(int position, std::int64_t step) const {
    if (gapBehind(position, step)) return nothing();
    const std::int64_t chunk = chunkSent(position, step, kReduceLag);
    Op op;
    op.kind = OpKind::kSend;
    op.peer = rankAt(position + 1);
    op.piece = piece(chunk);
    if (!exists(chunk)) return op;
    const bool isFirst = chunk + kReduceLag == step;
    if (!isFirst) {
      waitFor(op, kReduce, receiveIn(step - 1));
    } else if (onRing(chunk) == position) {
      waitFor(op, kReduce, receiveIn(chunk));
    }
    return op;
  }

  Op receiveResult(int position, std::int64_t step) const {
    if (gapBefore(position, step)) return nothing();
    Op op;
    op.kind = OpKind::kRecv;
    op.peer = rankAt(position - 1);
    op.piece = piece(chunkSent(position - 1, step, spreadLag()));
    return op;
  }

  Op sendResult(int position, std::int64_t step) const {
    const bool toStraggler = gapBehind(position, step);
    const std::int64_t chunk =
        toStraggler ? step - 2 * ring_ : chunkSent(position, step, spreadLag());
    if (toStraggler && !exists(chunk)) return nothing();
    Op op;
    op.kind = OpKind::kSend;
    op.peer = toStraggler ? straggler_ : rankAt(position + 1);
    op.piece = piece(chunk);
    if (!exists(chunk)) return op;
    // Hops from the position where the chunk was finished, in step chunk + n.
    const std::int64_t hops = onRing(position - residue(chunk) - chunk - 1);
    if (hops == 0) {
      waitFor(op, kReduce, receiveIn(chunk + ring_));
    } else {
      waitFor(op, kSpread, receiveIn(chunk + spreadLag() + hops - 1));
    }
    return op;
  }

  int ring_;  ///< ranks in the ring: all but the straggler
  std::int64_t elements_;
  std::int64_t chunks_ = 0;
  int straggler_;
};

}  // namespace

std::unique_ptr<Schedule> optccRing(int ranks, std::int64_t elements, int segments, int straggler) {
  return std::make_unique<OptccRing>(ranks, elements, segments, straggler);
}

}  // namespace faultline::schedule

#include "resilient_ccl/schedule/halving_doubling.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

class HalvingDoubling final : public Schedule {
 public:
  HalvingDoubling(int ranks, std::int64_t elements, int segments)
      : ranks_(ranks), elements_(elements), segments_(segments) {
    assert(ranks >= 1 && elements >= 0 && segments >= 1);
    steps_ = std::bit_width(static_cast<unsigned>(ranks)) - 1;
    core_ = 1 << steps_;
  }

  std::string_view algorithm() const override { return "halving_doubling"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return segments_; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int rank, int lane) const override {
    if (part(lane).count == 0) return 0;
    if (isGuest(rank)) return 2;
    return 4 * steps_ + (isHost(rank) ? 2 : 0);
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    if (isGuest(rank)) return guestOp(rank, lane, index);
    const std::int64_t first = isHost(rank) ? 1 : 0;
    const std::int64_t last = first + 4 * steps_;
    if (index < first) return make(OpKind::kRecvReduce, rank + 1, part(lane));
    if (index == last)
      return after(make(OpKind::kSend, rank + 1, part(lane)), rank, lane, last - 2);
    // R0 S0 R1 S1 ... of the halving, then of the doubling.
    const std::int64_t exchange = (index - first) / 2;
    const bool receives = (index - first) % 2 == 0;
    const bool halves = exchange < steps_;
    const std::int64_t step = halves ? exchange : 2 * steps_ - 1 - exchange;
    const int distance = core_ >> (step + 1);
    const int position = positionOf(rank);
    const int peer = rankAt(position ^ distance);
    const Piece mine = shared(lane, position, distance);
    const Piece theirs = shared(lane, position ^ distance, distance);
    // The receive of the exchange before this one, or the guest's data.
    const std::int64_t before = exchange > 0 ? first + 2 * (exchange - 1) : first - 1;
    if (receives) {
      Op op = make(halves ? OpKind::kRecvReduce : OpKind::kRecv, peer, halves ? mine : theirs);
      if (halves) op.after = before;
      return op;
    }
    Op op = make(OpKind::kSend, peer, halves ? theirs : mine);
    return before < 0 ? op : after(op, rank, lane, before);
  }

 private:
  /// What a guest sends, its host adds, and sends back when it is finished.
  Op guestOp(int rank, int lane, std::int64_t index) const {
    if (index == 0) return make(OpKind::kSend, rank - 1, part(lane));
    return after(make(OpKind::kRecv, rank - 1, part(lane)), rank, lane, 0);
  }
  bool isGuest(int rank) const { return rank < 2 * guests() && rank % 2 == 1; }
  bool isHost(int rank) const { return rank < 2 * guests() && rank % 2 == 0; }
  int guests() const { return ranks_ - core_; }

  /// Positions 0..core-1 of the ranks that are no guests.
  int positionOf(int rank) const { return rank < 2 * guests() ? rank / 2 : rank - guests(); }
  int rankAt(int position) const {
    return position < guests() ? 2 * position : position + guests();
  }

  /// What a position shares with those that differ from it in bits below `distance` only.
  Piece shared(int lane, int position, int distance) const {
    const int first = position & ~(distance - 1);
    const Piece whole = part(lane);
    const Piece begin = split(whole, core_, first);
    const Piece end = split(whole, core_, first + distance - 1);
    return {begin.offset, end.offset + end.count - begin.offset};
  }

  Piece part(int lane) const { return split({0, elements_}, segments_, lane); }

  static Op make(OpKind kind, int peer, Piece piece) {
    Op op;
    op.kind = kind;
    op.peer = peer;
    op.piece = piece;
    return op;
  }

  /// Waits for what it needs of an earlier operation of the lane.
  Op after(Op op, int rank, int lane, std::int64_t index) const {
    const Piece waited = this->op(rank, lane, index).piece;
    const std::int64_t needed = op.piece.offset + op.piece.count - waited.offset;
    op.waits[0] = {lane, index, std::min(waited.count, needed)};
    op.waitCount = 1;
    return op;
  }

  int ranks_;
  std::int64_t elements_;
  int segments_;
  int steps_ = 0;  ///< of the halving
  int core_ = 1;   ///< ranks that are no guests: the largest power of two
};

}  // namespace

std::unique_ptr<Schedule> halvingDoublingAllReduce(int ranks, std::int64_t elements, int segments) {
  return std::make_unique<HalvingDoubling>(ranks, elements, segments);
}

}  // namespace faultline::schedule

#include "resilient_ccl/schedule/pairwise.h"

#include <cassert>

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

/// S0 R0 S1 R1 ..., behind a copy of what stays in the rank.
class Pairwise final : public Schedule {
 public:
  Pairwise(Collective collective, int ranks, std::int64_t elements, int segments, int window)
      : collective_(collective), ranks_(ranks), elements_(elements), window_(window) {
    assert(ranks >= 1 && elements >= 0 && segments >= 1 && window >= 0);
    messages_ = exchanges() ? ranks - 1 : ranks == 1 ? 0 : segments;
    if (exchanges()) elements_ = (elements + ranks - 1) / ranks * ranks;
  }

  std::string_view algorithm() const override {
    return exchanges() ? "pairwise_all_to_all" : "ring_send_recv";
  }
  Collective collective() const override { return collective_; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return 1; }
  std::int64_t elements() const override { return bufferElements(collective_, elements_); }

  std::int64_t opCount(int /*rank*/, int /*lane*/) const override {
    return elements_ == 0 ? 0 : copies() + 2 * messages_;
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    Op op;
    if (index < copies()) {
      op.kind = OpKind::kCopy;
      op.source = exchanges() ? split({0, elements_}, ranks_, rank) : Piece{0, elements_};
      op.piece = output(op.source);
      return op;
    }
    const std::int64_t message = (index - copies()) / 2;
    const std::int64_t shift = exchanges() ? message + 1 : 1;
    if ((index - copies()) % 2 == 0) {
      op.kind = OpKind::kSend;
      op.peer = static_cast<int>((rank + shift) % ranks_);
      op.piece = part(message, op.peer);
      return op;
    }
    op.kind = OpKind::kRecv;
    op.peer = static_cast<int>((rank + ranks_ - shift) % ranks_);
    op.piece = output(part(message, op.peer));
    if (window_ > 0 && message >= window_) {
      op.waitCount = 1;
      op.waits[0] = {lane, index - 2 * window_, part(message - window_, op.peer).count};
    }
    return op;
  }

 private:
  bool exchanges() const { return collective_ == Collective::kAllToAll; }
  std::int64_t copies() const { return exchanges() || ranks_ == 1 ? 1 : 0; }
  Piece output(Piece piece) const { return {piece.offset + elements_, piece.count}; }
  Piece part(std::int64_t message, int peer) const {
    return exchanges() ? split({0, elements_}, ranks_, peer)
                       : split({0, elements_}, messages_, message);
  }

  Collective collective_;
  int ranks_;
  std::int64_t elements_;
  std::int64_t messages_ = 0;
  int window_;
};

}  // namespace

std::unique_ptr<Schedule> pairwiseAllToAll(int ranks, std::int64_t elements, int window) {
  return std::make_unique<Pairwise>(Collective::kAllToAll, ranks, elements, 1, window);
}

std::unique_ptr<Schedule> ringSendRecv(int ranks, std::int64_t elements, int segments, int window) {
  return std::make_unique<Pairwise>(Collective::kSendRecv, ranks, elements, segments, window);
}

}  // namespace faultline::schedule

#include "resilient_ccl/schedule/chain.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

class Chain final : public Schedule {
 public:
  Chain(Collective collective, std::vector<int> order, std::int64_t elements, int segments)
      : collective_(collective),
        order_(std::move(order)),
        place_(order_.size()),
        elements_(elements),
        segments_(segments) {
    assert(!order_.empty() && elements >= 0 && segments >= 1);
    if (!broadcasts()) std::reverse(order_.begin(), order_.end());  // data flows to the end
    for (std::size_t i = 0; i < order_.size(); ++i) place_[at(order_[i])] = static_cast<int>(i);
  }

  std::string_view algorithm() const override {
    return broadcasts() ? "chain_broadcast" : "chain_reduce";
  }
  Collective collective() const override { return collective_; }
  int root() const override { return broadcasts() ? order_.front() : order_.back(); }
  int ranks() const override { return static_cast<int>(order_.size()); }
  int lanes() const override { return 1; }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int rank, int /*lane*/) const override {
    const int place = place_[at(rank)];
    return elements_ == 0 ? 0 : segments_ * ((isFirst(place) ? 0 : 1) + (isLast(place) ? 0 : 1));
  }

  Op op(int rank, [[maybe_unused]] int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    const int place = place_[at(rank)];
    if (isFirst(place)) return send(place, index);
    if (isLast(place)) return receive(place, index);
    // R0 R1 S0 R2 S1 ... S(last).
    if (index == 0) return receive(place, 0);
    if (index == 2 * segments_ - 1) return send(place, segments_ - 1);
    if (index % 2 == 1) return receive(place, (index + 1) / 2);
    return send(place, index / 2 - 1);
  }

 private:
  bool broadcasts() const { return collective_ == Collective::kBroadcast; }
  bool isFirst(int place) const { return place == 0; }
  bool isLast(int place) const { return place + 1 == ranks(); }

  Op receive(int place, std::int64_t segment) const {
    Op op;
    op.kind = broadcasts() ? OpKind::kRecv : OpKind::kRecvReduce;
    op.peer = order_[at(place - 1)];
    op.piece = split({0, elements_}, segments_, segment);
    return op;
  }

  Op send(int place, std::int64_t segment) const {
    Op op;
    op.kind = OpKind::kSend;
    op.peer = order_[at(place + 1)];
    op.piece = split({0, elements_}, segments_, segment);
    if (!isFirst(place)) {
      op.waitCount = 1;
      op.waits[0] = {0, segment == 0 ? 0 : 2 * segment - 1, op.piece.count};
    }
    return op;
  }

  Collective collective_;
  std::vector<int> order_;
  std::vector<int> place_;  ///< of each rank in the order
  std::int64_t elements_;
  std::int64_t segments_;
};

}  // namespace

std::unique_ptr<Schedule> chainBroadcast(std::vector<int> order, std::int64_t elements,
                                         int segments) {
  return std::make_unique<Chain>(Collective::kBroadcast, std::move(order), elements, segments);
}

std::unique_ptr<Schedule> chainReduce(std::vector<int> order, std::int64_t elements, int segments) {
  return std::make_unique<Chain>(Collective::kReduce, std::move(order), elements, segments);
}

std::vector<int> chainOrder(int ranks, int root, const std::vector<double>& bandwidths) {
  std::vector<int> order(at(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + root, order.end());
  if (bandwidths.empty()) return order;
  std::stable_sort(order.begin() + 1, order.end(),
                   [&](int a, int b) { return bandwidths[at(a)] > bandwidths[at(b)]; });
  return order;
}

}  // namespace faultline::schedule

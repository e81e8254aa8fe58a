#include "resilient_ccl/schedule/relay.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/shares.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

/// Which part of each block goes straight, and which through whom.
class Relays {
 public:
  Relays(int ranks, std::int64_t elements, int segments, const std::vector<double>& bandwidths)
      : ranks_(ranks), elements_(elements), segments_(segments), slotOf_(at(ranks), -1) {
    assert(ranks >= 1 && elements >= 0 && segments >= 1);
    if (bandwidths.empty() || ranks < 3) return;
    std::vector<std::int64_t> steps;
    for (const double bandwidth : bandwidths) steps.push_back(bandwidthSteps(bandwidth));
    const std::int64_t p = ranks;
    const std::int64_t all = std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
    // In T = (p-1)/sum b a port moves b T. What that is above (p-1)/p, its own block to everybody,
    // is time to relay; who has less relays g of his block and moves ((p-1) - g (p-2))/p.
    std::int64_t spare = 0;
    for (const std::int64_t b : steps) spare += std::max<std::int64_t>(0, p * b - all);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t lacks = all - p * steps[at(rank)];
      if (lacks <= 0) continue;
      const std::int64_t relayed = std::min(kUnit, kUnit * (p - 1) * lacks / (all * (p - 2)));
      std::vector<std::int64_t> weights;
      for (const std::int64_t b : steps) {
        weights.push_back(relayed * std::max<std::int64_t>(0, p * b - all) / spare);
      }
      weights.push_back(kUnit - std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
      slotOf_[at(rank)] = static_cast<int>(slow_.size());
      slow_.push_back(rank);
      shares_.emplace_back(weights);
    }
  }

  int ranks() const { return ranks_; }
  std::int64_t elements() const { return elements_; }
  std::int64_t segments() const { return elements_ == 0 || ranks_ == 1 ? 0 : segments_; }
  /// The ranks whose blocks go through relays.
  const std::vector<int>& slow() const { return slow_; }
  bool isSlow(int rank) const { return slotOf_[at(rank)] >= 0; }

  /// What of a segment of a rank's block goes straight.
  Piece direct(int rank, std::int64_t segment) const {
    if (!isSlow(rank)) return part(rank, segment);
    return sharesOf(rank).piece(part(rank, segment), ranks_);
  }
  /// What goes through `relay`, for `other` at its other end; nothing where one of them is the rank
  /// itself.
  Piece through(int rank, std::int64_t segment, int relay, int other) const {
    if (!isSlow(rank) || rank == relay || rank == other) return {};
    return sharesOf(rank).piece(part(rank, segment), relay);
  }

 private:
  static constexpr std::int64_t kUnit = 1 << 20;

  const Shares& sharesOf(int rank) const { return shares_[at(slotOf_[at(rank)])]; }
  Piece part(int rank, std::int64_t segment) const {
    return split(split({0, elements_}, ranks_, rank), segments_, segment);
  }

  int ranks_;
  std::int64_t elements_;
  std::int64_t segments_;
  std::vector<int> slotOf_;  ///< in the following, by rank; -1 for who relays nothing
  std::vector<int> slow_;
  std::vector<Shares> shares_;  ///< of each slow rank: of relays by rank, and what goes straight
};

/// In macro step t = 1..p-1 of a segment a rank sends to the t-th after it and hears from the t-th
/// before it, in both lanes.
class Relayed : public Schedule {
 public:
  explicit Relayed(Relays relays) : relays_(std::move(relays)) {}

  int ranks() const override { return relays_.ranks(); }
  int lanes() const override { return 2; }
  std::int64_t elements() const override { return relays_.elements(); }
  std::int64_t opCount(int /*rank*/, int lane) const override {
    return relays_.segments() * (ranks() - 1) * stepOps(lane);
  }
  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    const std::int64_t step = index / stepOps(lane);
    const int shift = static_cast<int>(1 + step % (ranks() - 1));
    return opOf({lane, rank, step / (ranks() - 1), shift, (rank + shift) % ranks(),
                 (rank + ranks() - shift) % ranks()},
                index % stepOps(lane));
  }

 protected:
  struct Place {
    int lane, rank;
    std::int64_t segment;
    int shift;
    int to, from;
  };
  /// Operations of a macro step.
  virtual std::int64_t stepOps(int lane) const = 0;
  virtual Op opOf(const Place& place, std::int64_t number) const = 0;

  std::int64_t slowCount() const { return static_cast<std::int64_t>(relays_.slow().size()); }
  std::int64_t indexOf(int lane, std::int64_t segment, int shift, std::int64_t number) const {
    return (segment * (ranks() - 1) + shift - 1) * stepOps(lane) + number;
  }
  static Op make(OpKind kind, int peer, Piece piece) {
    Op op;
    op.kind = kind;
    op.peer = peer;
    op.piece = piece;
    return op;
  }
  static void waitFor(Op& op, std::int64_t index) {
    if (op.piece.count == 0) return;
    op.waits[0] = {0, index, op.piece.count};
    op.waitCount = 1;
  }

  Relays relays_;
};

class RelayAllGather final : public Relayed {
 public:
  using Relayed::Relayed;
  std::string_view algorithm() const override { return "relay_all_gather"; }
  Collective collective() const override { return Collective::kAllGather; }

 private:
  // Owners: own block, straight and to be relayed. Relays: for every slow rank.
  std::int64_t stepOps(int lane) const override { return lane == 0 ? 4 : 2 * slowCount(); }

  Op opOf(const Place& place, std::int64_t number) const override {
    const bool receives = number % 2 == 0;
    const OpKind kind = receives ? OpKind::kRecv : OpKind::kSend;
    const int peer = receives ? place.from : place.to;
    if (place.lane == 0) {
      const int owner = receives ? place.from : place.rank;
      const int relay = receives ? place.rank : place.to;
      return make(kind, peer,
                  number < kRelayed ? relays_.direct(owner, place.segment)
                                    : relays_.through(owner, place.segment, relay, relay));
    }
    const int owner = relays_.slow()[static_cast<std::size_t>(number / 2)];
    const int relay = receives ? place.from : place.rank;
    Op op = make(kind, peer,
                 relays_.through(owner, place.segment, relay, receives ? place.rank : place.to));
    if (!receives) {
      const int shift = (place.rank + ranks() - owner) % ranks();
      waitFor(op, indexOf(0, place.segment, std::max(shift, 1), kRelayed));
    }
    return op;
  }
  static constexpr std::int64_t kRelayed = 2;  ///< the receive of it, in a macro step of owners
};

class RelayReduceScatter final : public Relayed {
 public:
  using Relayed::Relayed;
  std::string_view algorithm() const override { return "relay_reduce_scatter"; }
  Collective collective() const override { return Collective::kReduceScatter; }

 private:
  // Contributions: to the peer's own block, and to what it relays for every slow rank. Relays:
  // sums.
  std::int64_t stepOps(int lane) const override { return lane == 0 ? 2 + 2 * slowCount() : 2; }

  Op opOf(const Place& place, std::int64_t number) const override {
    const bool receives = number % 2 == 1;
    const OpKind kind = receives ? OpKind::kRecvReduce : OpKind::kSend;
    const int peer = receives ? place.from : place.to;
    const int adder = receives ? place.rank : place.to;
    if (place.lane == 1) {
      // Sums from relays to the ranks of the blocks.
      const int relay = receives ? place.from : place.rank;
      Op op = make(kind, peer, relays_.through(adder, place.segment, relay, relay));
      if (!receives && op.piece.count > 0) waitFor(op, lastSum(place, adder));
      return op;
    }
    if (number < 2) {
      Op op = make(kind, peer, relays_.direct(adder, place.segment));
      if (receives && place.shift > 1)
        op.after = indexOf(0, place.segment, place.shift - 1, number);
      return op;
    }
    const std::int64_t slot = number / 2 - 1;
    const int rank = relays_.slow()[static_cast<std::size_t>(slot)];
    const int sender = receives ? place.from : place.rank;
    Op op = make(kind, peer, relays_.through(rank, place.segment, adder, sender));
    if (receives && op.piece.count > 0) {
      int before = place.shift - 1;
      if ((place.rank + ranks() - before) % ranks() == rank) --before;  // does not send to itself
      if (before > 0) op.after = indexOf(0, place.segment, before, number);
    }
    return op;
  }

  /// The last contribution to what a relay adds up for a slow rank.
  std::int64_t lastSum(const Place& place, int slow) const {
    const auto& all = relays_.slow();
    const std::int64_t slot = std::find(all.begin(), all.end(), slow) - all.begin();
    int last = ranks() - 1;
    if ((place.rank + ranks() - last) % ranks() == slow) --last;
    return indexOf(0, place.segment, last, 2 * (slot + 1) + 1);
  }
};

}  // namespace

std::unique_ptr<Schedule> relayAllGather(int ranks, std::int64_t elements, int segments,
                                         const std::vector<double>& send) {
  return std::make_unique<RelayAllGather>(Relays(ranks, elements, segments, send));
}

std::unique_ptr<Schedule> relayReduceScatter(int ranks, std::int64_t elements, int segments,
                                             const std::vector<double>& receive) {
  return std::make_unique<RelayReduceScatter>(Relays(ranks, elements, segments, receive));
}

}  // namespace faultline::schedule

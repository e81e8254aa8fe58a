#include "resilient_ccl/schedule/layered_all_reduce.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/ring_lane.h"
#include "resilient_ccl/schedule/shares.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

/// Lanes of all layers together, about: enough to share a port in eighths.
constexpr int kLanes = 8;
/// Where ports of fast ranks have time left, a layer's lanes run their rings in so many turns.
constexpr int kTurns = 4;
/// Their busy time over that of the slowest rank's port, at most.
constexpr std::int64_t kTurnsBelowPercent = 85;

class LayeredAllReduce final : public Schedule {
 public:
  LayeredAllReduce(std::string_view algorithm, int ranks, std::int64_t elements, int segments,
                   std::vector<RingLayer> layers)
      : algorithm_(algorithm), ranks_(ranks), elements_(elements), layers_(std::move(layers)) {
    for (const RingLayer& layer : layers_) {
      const int members = static_cast<int>(layer.members.size());
      assert(members >= 2 || ranks == 1);
      std::vector<int> place(at(ranks), 0);
      for (int i = 0; i < members; ++i) place[at(layer.members[at(i)])] = i;
      for (int i = 0; i < static_cast<int>(layer.excluded.size()); ++i) {
        place[at(layer.excluded[at(i)])] = -1 - i;
      }
      const int first = static_cast<int>(lanes_.size()), lanes = layer.lanes * layer.turns;
      for (int i = 0; i < lanes; ++i) {
        lanes_.push_back({&layer,
                          {members, split(layer.part, lanes, i)},
                          i,
                          i < layer.lanes ? -1 : first + i - layer.lanes});
      }
      places_.push_back(std::move(place));
      cuts_.push_back(pipelineChunks(layer, segments) / (members * layer.turns));
    }
  }

  std::string_view algorithm() const override { return algorithm_; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return static_cast<int>(lanes_.size()); }
  std::int64_t elements() const override { return elements_; }

  std::int64_t opCount(int rank, int lane) const override {
    if (ring(lane).part.count == 0) return 0;
    const int place = placeOf(rank, lane);
    if (place < 0) return 2 * chunks(lane);
    const int inChain = chainPlace(place, lane);
    return ring(lane).opCount() + chunks(lane) * (receives(inChain, lane) + sends(inChain, lane));
  }

  Op op(int rank, int lane, std::int64_t index) const override {
    assert(0 <= index && index < opCount(rank, lane));
    const int place = placeOf(rank, lane);
    if (place < 0) return excludedOp(-1 - place, lane, index);
    if (index >= ring(lane).opCount()) {
      return memberOp(chainPlace(place, lane), lane, index - ring(lane).opCount());
    }
    Op op = ring(lane).op(place, lane, index);
    op.peer = layer(lane).members[at(op.peer)];
    if (const int before = lanes_[at(lane)].after; index == 0 && before >= 0) {
      const std::int64_t last = ring(before).opCount() - 2;  // its ring's last receive
      if (last < 0) return op;
      const std::int64_t count = ring(before).op(place, before, last).piece.count;
      op.waits[at(op.waitCount++)] = {before, last, count};
    }
    return op;
  }

 private:
  struct Lane {
    const RingLayer* layer;
    RingLane ring;
    int number;  ///< among those of the layer
    int after;   ///< its ring begins when that of this lane is done; -1: at once
  };

  const RingLayer& layer(int lane) const { return *lanes_[at(lane)].layer; }
  const RingLane& ring(int lane) const { return lanes_[at(lane)].ring; }
  int layerIndex(int lane) const { return static_cast<int>(&layer(lane) - layers_.data()); }
  /// Position in the ring, or -1 - number among the excluded.
  int placeOf(int rank, int lane) const { return places_[at(layerIndex(lane))][at(rank)]; }
  int members(int lane) const { return ring(lane).ranks; }
  /// What several excluded ranks send to one member may be more than the rails carry that they have
  /// in common. So each lane's chain begins one member after that of the lane before. What one
  /// sends has room, and answers of one member at a time do not collide at its port.
  int chainPlace(int place, int lane) const {
    return (place + members(lane) - turn(lane)) % members(lane);
  }
  int ringPlace(int inChain, int lane) const { return (inChain + turn(lane)) % members(lane); }
  int chainMember(int inChain, int lane) const {
    return layer(lane).members[at(ringPlace(inChain, lane))];
  }
  int turn(int lane) const {
    return excluded(lane) > 1 ? lanes_[at(lane)].number % members(lane) : 0;
  }
  int excluded(int lane) const { return static_cast<int>(layer(lane).excluded.size()); }

  /// Of the pipeline through the excluded ranks.
  std::int64_t chunks(int lane) const {
    return excluded(lane) == 0 ? 0 : members(lane) * cuts_[at(layerIndex(lane))];
  }
  Piece chunk(int lane, std::int64_t number) const {
    const std::int64_t cuts = cuts_[at(layerIndex(lane))];
    return split(ring(lane).chunk(number / cuts), cuts, number % cuts);
  }

  /// Operations of a member for each chunk: it receives from the excluded (the first member) or
  /// from the member before it, and sends to the next member and to some of the excluded.
  int receives(int place, int lane) const { return place == 0 ? excluded(lane) : 1; }
  int sends(int place, int lane) const {
    return (place + 1 < members(lane) ? 1 : 0) + leaves(place, lane);
  }
  /// The excluded ranks that a member sends to: number i is served by member n-1 - i mod n, so that
  /// the end of the ring, which has no next member, comes first.
  int leaves(int place, int lane) const {
    const int fromEnd = members(lane) - 1 - place;
    return (excluded(lane) - fromEnd + members(lane) - 1) / members(lane);
  }

  /// Excluded: S0 R0 S1 R1 ..., all that the others grant.
  Op excludedOp(int number, int lane, std::int64_t index) const {
    const int server = members(lane) - 1 - number % members(lane);
    Op op;
    op.kind = index % 2 == 0 ? OpKind::kSend : OpKind::kRecv;
    op.peer = chainMember(index % 2 == 0 ? 0 : server, lane);
    op.piece = chunk(lane, index / 2);
    return op;
  }

  /// The receives of chunk c+1 are posted before the sends of chunk c: R0 R1 S0 R2 S1 ... S(last),
  /// where R and S stand for all receives and sends of a chunk.
  Op memberOp(int place, int lane, std::int64_t index) const {
    const int r = receives(place, lane), s = sends(place, lane);
    if (index < r) return receive(place, lane, 0, static_cast<int>(index));
    const std::int64_t round = (index - r) / (r + s);
    const int inRound = static_cast<int>((index - r) % (r + s));
    const bool lastRound = round == chunks(lane) - 1;  // has nothing more to receive
    if (!lastRound && inRound < r) return receive(place, lane, round + 1, inRound);
    return send(place, lane, round, lastRound ? inRound : inRound - r);
  }

  /// Index in the lane of receive `number` of a chunk.
  std::int64_t receiveIndex(int place, int lane, std::int64_t chunk, int number) const {
    const int r = receives(place, lane), s = sends(place, lane);
    return ring(lane).opCount() + (chunk == 0 ? 0 : r + (chunk - 1) * (r + s)) + number;
  }

  Op receive(int place, int lane, std::int64_t number, int which) const {
    Op op;
    op.piece = chunk(lane, number);
    // The ring has to be through with these elements.
    const std::int64_t ringChunk = number / cuts_[at(layerIndex(lane))];
    for (const std::int64_t last : {ring(lane).lastReceiveOf(ringPlace(place, lane), ringChunk),
                                    ring(lane).lastSendOf(ringPlace(place, lane), ringChunk)}) {
      if (last < 0) continue;
      op.waits[at(op.waitCount++)] = {lane, last, ring(lane).chunk(ringChunk).count};
    }
    if (place == 0) {
      op.kind = OpKind::kRecvReduce;
      op.peer = layer(lane).excluded[at(which)];
      if (which > 0) op.after = receiveIndex(place, lane, number, which - 1);
    } else {
      op.kind = OpKind::kRecv;
      op.peer = chainMember(place - 1, lane);
    }
    return op;
  }

  Op send(int place, int lane, std::int64_t number, int which) const {
    const bool alongRing = place + 1 < members(lane) && which == 0;
    Op op;
    op.kind = OpKind::kSend;
    op.piece = chunk(lane, number);
    if (alongRing) {
      op.peer = chainMember(place + 1, lane);
    } else {
      const int leaf = place + 1 < members(lane) ? which - 1 : which;
      const int fromEnd = members(lane) - 1 - place;
      op.peer = layer(lane).excluded[at(fromEnd + leaf * members(lane))];
    }
    op.waitCount = 1;
    op.waits[0] = {lane, receiveIndex(place, lane, number, receives(place, lane) - 1),
                   op.piece.count};
    return op;
  }

  std::string_view algorithm_;
  int ranks_;
  std::int64_t elements_;
  std::vector<RingLayer> layers_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<int>> places_;  ///< per layer and rank
  std::vector<std::int64_t> cuts_;        ///< per layer: parts of a ring's chunk in the pipeline
};

}  // namespace

std::vector<RingLayer> ringLayers(int ranks, std::int64_t elements, int segments,
                                  const std::vector<double>& bandwidths, bool allLevels) {
  std::vector<std::int64_t> steps(at(ranks), kBandwidthSteps);
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    steps[rank] = bandwidthSteps(bandwidths[rank]);
  }
  std::vector<std::int64_t> levels = steps;
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  if (!allLevels && levels.size() > 2) levels.erase(levels.begin() + 1, levels.end() - 1);

  std::vector<RingLayer> layers;
  std::vector<std::int64_t> weights;
  std::int64_t used = 0;
  for (const std::int64_t level : levels) {
    RingLayer layer;
    for (int rank = 0; rank < ranks; ++rank) {
      (steps[at(rank)] >= level ? layer.members : layer.excluded).push_back(rank);
    }
    const auto n = static_cast<std::int64_t>(layer.members.size());
    const std::int64_t p = ranks;
    const bool pays = layer.excluded.empty() || p * (segments + 1) < 2 * (p - 1) * segments;
    if (ranks > 1 && (n < 2 || !pays)) break;
    layer.lanes = static_cast<int>(
        std::max<std::int64_t>(1, (kLanes * (level - used) + levels.back() / 2) / levels.back()));
    // Rate over the time per element, 2(n-1)/n.
    weights.push_back(n == 1 ? 1 : (level - used) * kBandwidthSteps * n / (n - 1));
    layers.push_back(std::move(layer));
    used = level;
  }
  const Shares shares(weights);
  for (int i = 0; i < shares.count(); ++i) {
    layers[at(i)].part = shares.piece({0, elements}, i);
  }
  // What the port of a slowest and of a fastest rank carries, each over its bandwidth.
  std::int64_t slow = 0, fast = 0;
  for (const RingLayer& layer : layers) {
    const auto n = static_cast<std::int64_t>(layer.members.size());
    const std::int64_t inRing = 2 * (n - 1) * layer.part.count / n;
    slow += layer.excluded.empty() ? inRing : layer.part.count;
    fast += inRing + (layer.excluded.empty() ? 0 : layer.part.count);
  }
  const bool hasTime = 100 * fast * levels.front() <= kTurnsBelowPercent * slow * levels.back();
  for (RingLayer& layer : layers) {
    // With more turns than that there would be more chunks than segments.
    const int most = segments / static_cast<int>(layer.members.size());
    if (layer.excluded.size() == 1 && hasTime) layer.turns = std::clamp(most, 1, kTurns);
  }
  return layers;
}

int pipelineChunks(const RingLayer& layer, int segments) {
  const int inRing = static_cast<int>(layer.members.size()) * layer.turns;
  return (segments + inRing - 1) / inRing * inRing;
}

std::unique_ptr<Schedule> layeredAllReduce(std::string_view algorithm, int ranks,
                                           std::int64_t elements, int segments,
                                           std::vector<RingLayer> layers) {
  return std::make_unique<LayeredAllReduce>(algorithm, ranks, elements, segments,
                                            std::move(layers));
}

}  // namespace faultline::schedule

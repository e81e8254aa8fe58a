#include "resilient_ccl/schedule/cost.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/port_simulator.h"
#include "resilient_ccl/schedule/replay.h"
#include "resilient_ccl/schedule/step_cost.h"

namespace faultline::schedule {
namespace {

class Player {
 public:
  Player(const OpTable& table, std::int64_t data, const PortBandwidths& bandwidths,
         const CostOptions& options)
      : table_(table),
        data_(data),
        options_(options),
        nodes_(table.ranks() / options.ranksPerNode),
        ports_(makePortSimulator(options.portModel, portsOf(bandwidths, options), options.links)),
        replay_(table, 0),
        depth_(at(table.size()), 0) {}

  /// Plays everything and returns when the last message arrives.
  double play() {
    startMovable();
    while (true) {
      const std::optional<double> portTime = ports_->nextTime();
      if (!arrivals_.empty() && (!portTime || arrivals_.top().first <= *portTime)) {
        now_ = arrivals_.top().first;
        while (!arrivals_.empty() && arrivals_.top().first <= now_) {
          const int op = arrivals_.top().second;
          arrivals_.pop();
          complete(op);
        }
        startMovable();
      } else if (portTime) {
        for (const auto& [op, time] : ports_->takeNext()) {
          arrivals_.push({time + options_.alpha, op});
        }
      } else {
        return now_;
      }
    }
  }

  bool finished() const { return replay_.finished(); }
  int depth() const { return depth_.empty() ? 0 : *std::max_element(depth_.begin(), depth_.end()); }

 private:
  using Arrival = std::pair<double, int>;

  void startMovable() {
    // What moves no data completes at once and may let more move.
    std::vector<int> movable = replay_.takeMovable();
    while (!movable.empty()) {
      for (const int op : movable) start(op);
      movable = replay_.takeMovable();
    }
  }

  void start(int op) {
    const OpTable::Entry& entry = table_[op];
    const bool isMessage = entry.kind == OpKind::kSend && entry.piece.count > 0;
    depth_[at(op)] = depthOfWaits(op) + (isMessage ? 1 : 0);
    if (entry.partner >= 0) {
      depth_[at(entry.partner)] = std::max(depth_[at(op)], depthOfWaits(entry.partner));
    }
    if (!isMessage) {
      complete(op);
      return;
    }
    const double size = static_cast<double>(entry.piece.count) / static_cast<double>(data_);
    const std::int64_t ranks = table_.ranks();
    const std::int64_t stream = (entry.lane * ranks + entry.rank) * ranks + entry.peer;
    ports_->add({op, portOf(entry.rank, entry.peer), portOf(entry.peer, entry.rank), size,
                 options_.perMessage, stream, linkOf(entry.rank, entry.peer)},
                now_);
  }

  void complete(int op) {
    replay_.complete(op);
    for (const int receive : replay_.takeReceived()) {
      const int after = table_[receive].after;
      if (after >= 0) depth_[at(receive)] = std::max(depth_[at(receive)], depth_[at(after)]);
    }
  }

  /// The ports of all nodes to the network, then those of all ranks inside their nodes.
  static PortBandwidths portsOf(const PortBandwidths& bandwidths, const CostOptions& options) {
    PortBandwidths ports = nodeBandwidths(bandwidths, options.ranksPerNode);
    if (options.ranksPerNode == 1) return ports;
    ports.send.resize(ports.send.size() + bandwidths.size(), options.insideBandwidth);
    ports.receive.resize(ports.send.size(), options.insideBandwidth);
    return ports;
  }

  int linkOf(int rank, int peer) const {
    return options_.links.empty() ? -1 : rank * table_.ranks() + peer;
  }

  int portOf(int rank, int peer) const {
    const int node = rank / options_.ranksPerNode;
    return node == peer / options_.ranksPerNode ? nodes_ + rank : node;
  }

  /// Of the messages that brought what the operation works on. Waits for others, which only keep
  /// its place in a row, do not count.
  int depthOfWaits(int op) const {
    const OpTable::Entry& entry = table_[op];
    int depth = 0;
    for (int i = 0; i < entry.waitCount; ++i) {
      const int waited = entry.waitOp[at(i)];
      if (overlap(table_[waited].piece, entry.piece)) depth = std::max(depth, depth_[at(waited)]);
    }
    return depth;
  }

  static bool overlap(const Piece& a, const Piece& b) {
    return a.offset < b.offset + b.count && b.offset < a.offset + a.count;
  }

  const OpTable& table_;
  const std::int64_t data_;  ///< elements
  const CostOptions& options_;
  const int nodes_;
  std::unique_ptr<PortSimulator> ports_;
  Replay replay_;
  std::vector<int> depth_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  double now_ = 0;
};

std::int64_t messagesPerRankMax(const OpTable& table) {
  std::vector<std::int64_t> sent(at(table.ranks()), 0);
  std::vector<std::int64_t> received(at(table.ranks()), 0);
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    if (entry.kind == OpKind::kCopy || entry.piece.count == 0) continue;
    ++(entry.kind == OpKind::kSend ? sent : received)[at(entry.rank)];
  }
  std::int64_t most = 0;
  for (const auto& counts : {sent, received}) {
    for (const std::int64_t count : counts) most = std::max(most, count);
  }
  return most;
}

/// What has to move inside a node at least, per rank: each shares S with the others of its node.
/// Only known for AllReduce.
double insideBound(Collective collective, const CostOptions& options) {
  if (collective != Collective::kAllReduce) return 0;
  return faultFreeRingTime(options.ranksPerNode) / options.insideBandwidth;
}

/// Messages of the fault-free algorithm that one follows the other in: of a ring, or of a pipeline
/// of one segment.
int ringSteps(Collective collective, int ranks) {
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (ranks - 1);
    case Collective::kSendRecv:
      return 1;
    default:
      return ranks - 1;
  }
}

std::int64_t operationsOf(const Schedule& schedule) {
  std::int64_t total = 0;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int lane = 0; lane < schedule.lanes(); ++lane) total += schedule.opCount(rank, lane);
  }
  return total;
}

Result<Cost> costOfOperations(const Schedule& schedule, const PortBandwidths& bandwidths,
                              const CostOptions& options) {
  Problems problems;
  ASSIGN_OR_RETURN(const OpTable table, OpTable::load(schedule, problems));
  if (!problems.empty()) {
    const Problem& first = problems.kept().front();
    return errorf(Code::kInvalidArgument, "the schedule is wrong: rank {} lane {} op {} {}",
                  first.rank, first.lane, first.op, first.text);
  }
  Cost cost;
  Player player(table, dataElements(schedule.collective(), schedule.elements()), bandwidths,
                options);
  cost.time = player.play();
  if (!player.finished()) {
    return errorf(Code::kInvalidArgument, "the schedule deadlocks; `schedule verify` says where");
  }
  cost.depth = player.depth();
  cost.messagesPerRankMax = messagesPerRankMax(table);
  return cost;
}

}  // namespace

Result<Cost> costOf(const Schedule& schedule, const PortBandwidths& bandwidths,
                    const CostOptions& options) {
  if (bandwidths.size() != at(schedule.ranks())) {
    return errorf(Code::kInvalidArgument, "{} bandwidths given for {} ranks", bandwidths.size(),
                  schedule.ranks());
  }
  const int ranks = schedule.ranks();
  if (options.ranksPerNode < 1 || ranks % options.ranksPerNode != 0) {
    return errorf(Code::kInvalidArgument, "{} ranks cannot be spread over nodes of {}", ranks,
                  options.ranksPerNode);
  }
  const std::size_t pairs = at(ranks) * at(ranks);
  if (!options.links.empty() && (options.links.size() != pairs || options.ranksPerNode > 1)) {
    return errorf(Code::kInvalidArgument, "{} links given between {} ranks in nodes of {}",
                  options.links.size(), ranks, options.ranksPerNode);
  }
  const StepView* steps = schedule.stepView();
  Cost cost;
  if (steps != nullptr && options.ranksPerNode == 1 && options.links.empty() &&
      (options.portModel == PortModel::kOnePort || operationsOf(schedule) > options.mostPlayed)) {
    cost = costOfSteps(*steps, schedule.elements(), bandwidths, options);
    cost.fromSteps = true;
  } else {
    ASSIGN_OR_RETURN(cost, costOfOperations(schedule, bandwidths, options));
  }
  if (ranks < 2 || schedule.elements() == 0) return cost;
  const Collective collective = schedule.collective();
  // One node has no port in use: it is compared with what ranks on nodes of their own would need.
  const bool crosses = ranks > options.ranksPerNode;
  cost.ringTime = faultFreeTime(collective, ranks, crosses ? options.ranksPerNode : 1) +
                  ringSteps(collective, ranks) * (options.alpha + options.perMessage);
  cost.boundTime = std::max(lowerBound(collective, nodeBandwidths(bandwidths, options.ranksPerNode),
                                       options.portModel, options.ranksPerNode),
                            insideBound(collective, options));
  cost.timeOverRing = cost.time / cost.ringTime;
  cost.boundOverRing = cost.boundTime / cost.ringTime;
  cost.timeOverBound = cost.time / cost.boundTime;
  return cost;
}

}  // namespace faultline::schedule

#include "resilient_ccl/schedule/msccl/importer.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/op_lists.h"

namespace faultline::schedule::msccl {
namespace {

/// What a step does, or the receiving or sending half of it.
struct Action {
  OpKind kind = OpKind::kSend;
  int block = 0;
  int step = 0;
  int lane = 0;
  std::int64_t key = 0;  ///< order in the lane
  int peer = 0;
  Piece piece, source;
  std::int64_t op = -1;  ///< place in the lane, when it has one
};

bool overlap(const Piece& a, const Piece& b) {
  return a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}
bool writes(const Action& action) { return action.kind != OpKind::kSend; }
bool conflict(const Action& a, const Action& b) {
  const bool copies = a.kind == OpKind::kCopy || b.kind == OpKind::kCopy;
  return (overlap(a.piece, b.piece) && (writes(a) || writes(b))) ||
         (copies && (overlap(a.source, b.piece) || overlap(a.piece, b.source)));
}

/// An order in which MSCCL could finish all steps: thread blocks take theirs one after the other, a
/// receive needs its message, a step what it waits for. By rank, block, step.
class Finishing {
 public:
  explicit Finishing(const Algo& algo) : algo_(algo), cursor_(algo.gpus.size()) {
    for (std::size_t rank = 0; rank < algo.gpus.size(); ++rank) {
      cursor_[rank].assign(algo.gpus[rank].blocks.size(), 0);
      numbers_.emplace_back(algo.gpus[rank].blocks.size());
    }
  }

  Status run() {
    for (bool moved = true; moved;) {
      moved = false;
      // Round by round, so that what could happen at once is near each other.
      const std::int64_t round = nextNumber_;
      for (int rank = 0; rank < static_cast<int>(cursor_.size()); ++rank) {
        for (int block = 0; block < static_cast<int>(cursor_[at(rank)].size()); ++block) {
          moved |= takeOne(rank, block, round);
        }
      }
    }
    for (std::size_t rank = 0; rank < cursor_.size(); ++rank) {
      for (std::size_t block = 0; block < cursor_[rank].size(); ++block) {
        if (at(cursor_[rank][block]) == algo_.gpus[rank].blocks[block].steps.size()) continue;
        return errorf(Code::kInvalidArgument,
                      "gpu {} tb {} step {} can never run: what it waits for, or its message, "
                      "never comes",
                      rank, block, cursor_[rank][block]);
      }
    }
    for (const auto& [connection, sent] : sent_) {
      if (sent == 0) continue;
      return errorf(Code::kInvalidArgument,
                    "gpu {} sends to gpu {} in channel {} what is never "
                    "received",
                    std::get<1>(connection), std::get<2>(connection), std::get<0>(connection));
    }
    return okStatus();
  }

  std::int64_t numberOf(int rank, int block, int step) const {
    return numbers_[at(rank)][at(block)][at(step)];
  }

 private:
  bool takeOne(int rank, int block, std::int64_t round) {
    const ThreadBlock& taken = algo_.gpus[at(rank)].blocks[at(block)];
    int& cursor = cursor_[at(rank)][at(block)];
    if (at(cursor) == taken.steps.size()) return false;
    const Step& step = taken.steps[at(cursor)];
    if (step.waitBlock >= 0 && cursor_[at(rank)][at(step.waitBlock)] <= step.waitStep) return false;
    // What was sent in this round arrives in the next.
    if (receives(step.type)) {
      auto& waiting = arriving_[{taken.channel, taken.recvPeer, rank}];
      if (waiting.empty() || waiting.front() >= round) return false;
      waiting.erase(waiting.begin());
      --sent_[{taken.channel, taken.recvPeer, rank}];
    }
    if (sends(step.type)) {
      arriving_[{taken.channel, rank, taken.sendPeer}].push_back(nextNumber_);
      ++sent_[{taken.channel, rank, taken.sendPeer}];
    }
    numbers_[at(rank)][at(block)].push_back(nextNumber_++);
    ++cursor;
    return true;
  }

  using Connection = std::tuple<int, int, int>;  ///< channel, from, to

  const Algo& algo_;
  std::vector<std::vector<int>> cursor_;
  std::vector<std::vector<std::vector<std::int64_t>>> numbers_;
  std::map<Connection, std::vector<std::int64_t>> arriving_;
  std::map<Connection, int> sent_;
  std::int64_t nextNumber_ = 1;
};

class Importer {
 public:
  Importer(const Algo& algo, std::int64_t data) : algo_(algo), data_(data) {
    const std::int64_t chunks = algo.chunks;
    if (hasOutput(algo.collective)) data_ = (data + chunks - 1) / chunks * chunks;
  }

  Result<std::unique_ptr<Schedule>> run() {
    RETURN_IF_ERROR(checkConnections());
    Finishing finishing(algo_);
    RETURN_IF_ERROR(finishing.run());
    ASSIGN_OR_RETURN(ordered_, hasOrders());
    lanes_ = ordered_ ? algo_.channels : algo_.channels * ranks();
    made_ = std::make_unique<OpLists>(algo_.name, algo_.collective, ranks(), lanes_,
                                      bufferElements(algo_.collective, data_));
    for (int rank = 0; rank < ranks(); ++rank) {
      RETURN_IF_ERROR(makeActions(rank, finishing));
      RETURN_IF_ERROR(sortLanes(rank));
      for (int lane = 0; lane < lanes_; ++lane) writeLane(rank, lane);
      connectWaits(rank);
    }
    return std::unique_ptr<Schedule>(std::move(made_));
  }

 private:
  int ranks() const { return static_cast<int>(algo_.gpus.size()); }

  Status checkConnections() const {
    for (int rank = 0; rank < ranks(); ++rank) {
      std::map<std::tuple<int, bool, int>, int> users;
      for (const ThreadBlock& block : algo_.gpus[at(rank)].blocks) {
        if (block.sendPeer >= 0) ++users[{block.channel, true, block.sendPeer}];
        if (block.recvPeer >= 0) ++users[{block.channel, false, block.recvPeer}];
      }
      for (const auto& [connection, count] : users) {
        if (count < 2) continue;
        return errorf(Code::kInvalidArgument,
                      "gpu {} has {} thread blocks that {} gpu {} in channel {}; a connection "
                      "belongs to one",
                      rank, count, std::get<1>(connection) ? "send to" : "receive from",
                      std::get<2>(connection), std::get<0>(connection));
      }
    }
    return okStatus();
  }

  /// Whether all steps say where they were in their lanes.
  Result<bool> hasOrders() const {
    bool some = false, all = true;
    for (const Gpu& gpu : algo_.gpus) {
      for (const ThreadBlock& block : gpu.blocks) {
        for (const Step& step : block.steps) {
          if (step.type == StepType::kNop) continue;
          some |= step.order >= 0;
          all &= step.order >= 0;
          if (step.order >= 0 && receives(step.type) && sends(step.type)) {
            return errorf(Code::kInvalidArgument, "a step with an order does one thing only");
          }
        }
      }
    }
    if (some && !all) return errorf(Code::kInvalidArgument, "only some steps have an order");
    return some;
  }

  Status makeActions(int rank, const Finishing& finishing) {
    actions_.clear();
    ofStep_.clear();
    const auto& blocks = algo_.gpus[at(rank)].blocks;
    for (int b = 0; b < static_cast<int>(blocks.size()); ++b) {
      const ThreadBlock& block = blocks[at(b)];
      auto& ofBlock = ofStep_.emplace_back();
      for (int s = 0; s < static_cast<int>(block.steps.size()); ++s) {
        const Step& step = block.steps[at(s)];
        ofBlock.push_back({});
        const auto add = [&](OpKind kind, int peer, const Place& place) {
          const int receiver = kind == OpKind::kSend ? peer : rank;
          Action action;
          action.kind = kind;
          action.block = b;
          action.step = s;
          action.peer = peer;
          action.lane = ordered_ ? block.channel : block.channel * ranks() + receiver;
          action.key = ordered_ ? step.order : finishing.numberOf(rank, b, s);
          action.piece = pieceAt(rank, place, step.count);
          if (kind == OpKind::kCopy) action.source = pieceAt(rank, step.source, step.count);
          ofBlock.back().push_back(static_cast<int>(actions_.size()));
          actions_.push_back(action);
        };
        const bool reduces = step.type == StepType::kRecvReduceSend ||
                             step.type == StepType::kRecvReduceCopy ||
                             step.type == StepType::kRecvReduceCopySend;
        // The sum goes on from where it is put.
        const Place& place = step.destination.offset >= 0 ? step.destination : step.source;
        if (reduces && pieceAt(rank, step.source, step.count).offset !=
                           pieceAt(rank, place, step.count).offset) {
          return errorf(Code::kInvalidArgument,
                        "gpu {} tb {} step {} adds to its source and puts the sum into another "
                        "place; Faultline reduces in place",
                        rank, b, s);
        }
        if (receives(step.type)) {
          add(reduces ? OpKind::kRecvReduce : OpKind::kRecv, block.recvPeer, place);
        }
        if (step.type == StepType::kCopy) add(OpKind::kCopy, 0, step.destination);
        if (sends(step.type)) add(OpKind::kSend, block.sendPeer, place);
      }
    }
    return okStatus();
  }

  Piece pieceAt(int rank, const Place& place, int count) const {
    std::int64_t first = place.offset;
    const bool output = place.buffer == Buffer::kOutput;
    const std::int64_t block = algo_.chunks / ranks();
    if (algo_.collective == Collective::kAllGather && !output) first += rank * block;
    if (algo_.collective == Collective::kReduceScatter && output) first += rank * block;
    const auto boundary = [&](std::int64_t chunk) {
      return chunk == algo_.chunks ? data_ : split({0, data_}, algo_.chunks, chunk).offset;
    };
    const std::int64_t base = hasOutput(algo_.collective) && output ? data_ : 0;
    return {base + boundary(first), boundary(first + count) - boundary(first)};
  }

  Status sortLanes(int rank) {
    inLane_.assign(at(lanes_), {});
    for (int i = 0; i < static_cast<int>(actions_.size()); ++i) {
      inLane_[at(actions_[at(i)].lane)].push_back(i);
    }
    for (std::vector<int>& lane : inLane_) {
      std::stable_sort(lane.begin(), lane.end(),
                       [&](int a, int b) { return actions_[at(a)].key < actions_[at(b)].key; });
      std::map<int, int> lastStep;
      for (const int i : lane) {
        const Action& action = actions_[at(i)];
        const auto [last, isFirst] = lastStep.try_emplace(action.block, action.step);
        if (!isFirst && last->second > action.step) {
          return errorf(Code::kInvalidArgument,
                        "gpu {} tb {} step {}: its order contradicts that of the steps", rank,
                        action.block, action.step);
        }
        last->second = action.step;
      }
    }
    return okStatus();
  }

  /// Of one lane, by thread block: the last step that operations issued from now on come after, and
  /// the last step whose waits are counted in that.
  struct Known {
    explicit Known(std::size_t blocks) : steps(blocks, -1), read(blocks, -1) {}
    std::vector<int> steps, read;
  };
  /// What an operation comes after, as actions.
  struct Order {
    std::vector<int> waits;
    int after = -1;  ///< a reduction into the same piece that comes first
  };

  void writeLane(int rank, int lane) {
    Known known(algo_.gpus[at(rank)].blocks.size());
    std::vector<Op>& ops = made_->lane(rank, lane);
    for (const int index : inLane_[at(lane)]) {
      Action& action = actions_[at(index)];
      Op op;
      op.kind = action.kind;
      op.peer = action.peer;
      op.piece = action.piece;
      op.source = action.source;
      const auto [waits, after] = orderOf(rank, index, known);
      if (after >= 0) op.after = actions_[at(after)].op;
      // Further waits than an operation has room for go to copies of nothing in front of it.
      std::size_t next = 0;
      while (waits.size() - next > at(Op::kMaxWaits)) {
        Op nothing;
        nothing.kind = OpKind::kCopy;
        for (int i = 0; i < Op::kMaxWaits; ++i) addWait(nothing, waits[next++]);
        ops.push_back(nothing);
      }
      while (next < waits.size()) addWait(op, waits[next++]);
      action.op = static_cast<std::int64_t>(ops.size());
      ops.push_back(op);
    }
  }

  Order orderOf(int rank, int index, Known& known) const {
    const Action& action = actions_[at(index)];
    const int block = action.block;
    Order order;
    for (int s = known.read[at(block)] + 1; s <= action.step; ++s) {
      const Step& step = algo_.gpus[at(rank)].blocks[at(block)].steps[at(s)];
      if (step.waitBlock < 0) continue;
      const auto& ofBlock = ofStep_[at(step.waitBlock)];
      int& knownStep = known.steps[at(step.waitBlock)];
      const auto& waited = ofBlock[at(step.waitStep)];
      if (knownStep >= step.waitStep) {
        // Comes after it anyway; a wait for what it works on says why.
        for (const int earlier : waited) {
          if (conflict(actions_[at(earlier)], action)) order.waits.push_back(earlier);
        }
      } else if (waited.size() == 1 && reducesAfter(action, waited[0])) {
        followOn(order, waited[0]);
      } else {
        // MSCCL has done the steps before it as well; in a lane they may be unfinished.
        const int first = ordered_ ? step.waitStep : knownStep + 1;
        for (knownStep = first; knownStep <= step.waitStep; ++knownStep) {
          const auto& all = ofBlock[at(knownStep)];
          order.waits.insert(order.waits.end(), all.begin(), all.end());
        }
        knownStep = step.waitStep;
      }
    }
    known.read[at(block)] = action.step;
    if (ordered_) return order;  // lanes and waits are those of a schedule
    // What the thread block did before to the same chunks.
    for (int s = known.steps[at(block)] + 1; s <= action.step; ++s) {
      for (const int earlier : ofStep_[at(block)][at(s)]) {
        if (earlier >= index || !conflict(actions_[at(earlier)], action)) continue;
        if (reducesAfter(action, earlier)) {
          followOn(order, earlier);
        } else {
          order.waits.push_back(earlier);
        }
      }
    }
    return order;
  }

  /// Whether the order of two reductions is all that is needed, so that messages need not wait.
  bool reducesAfter(const Action& action, int earlier) const {
    const Action& before = actions_[at(earlier)];
    return action.kind == OpKind::kRecvReduce && before.kind == OpKind::kRecvReduce &&
           before.lane == action.lane && before.op >= 0 && overlap(before.piece, action.piece);
  }

  void followOn(Order& order, int earlier) const {
    if (order.after < 0 || actions_[at(earlier)].op > actions_[at(order.after)].op) {
      order.after = earlier;
    }
  }

  /// Notes the action waited for; where it stands is known when all lanes are written.
  void addWait(Op& op, int action) const {
    op.waits[at(op.waitCount++)] = {actions_[at(action)].lane, action,
                                    actions_[at(action)].piece.count};
  }

  void connectWaits(int rank) {
    for (int lane = 0; lane < lanes_; ++lane) {
      for (Op& op : made_->lane(rank, lane)) {
        for (int i = 0; i < op.waitCount; ++i) {
          Wait& wait = op.waits[at(i)];
          wait.op = actions_[static_cast<std::size_t>(wait.op)].op;
        }
      }
    }
  }

  const Algo& algo_;
  std::int64_t data_;
  bool ordered_ = false;
  int lanes_ = 0;
  std::unique_ptr<OpLists> made_;
  // Of the rank in hand.
  std::vector<Action> actions_;
  std::vector<std::vector<std::vector<int>>> ofStep_;  ///< actions by block and step
  std::vector<std::vector<int>> inLane_;
};

}  // namespace

Result<std::unique_ptr<Schedule>> importSchedule(const Algo& algo, std::int64_t dataElements) {
  if (dataElements < 0) {
    return errorf(Code::kInvalidArgument, "a schedule cannot move {} elements", dataElements);
  }
  return Importer(algo, dataElements).run();
}

}  // namespace faultline::schedule::msccl

#include "resilient_ccl/schedule/msccl/exporter.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/msccl/importer.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/op_table.h"
#include "resilient_ccl/schedule/verifier.h"

namespace faultline::schedule::msccl {
namespace {

/// Largest number of elements that all pieces, and the data itself, are multiples of.
std::int64_t commonUnit(const OpTable& table, std::int64_t data) {
  std::int64_t unit = data;
  for (int op = 0; op < table.size(); ++op) {
    if (table[op].piece.count == 0) continue;
    for (const Piece& piece : {table[op].piece, table[op].source}) {
      unit = std::gcd(std::gcd(unit, piece.offset), piece.count);
    }
  }
  return unit;
}

class Exporter {
 public:
  Exporter(const Schedule& schedule, const OpTable& table)
      : table_(table), placeOf_(at(table.size())) {
    algo_.name = schedule.algorithm();
    algo_.collective = schedule.collective();
    algo_.inPlace = !hasOutput(algo_.collective);
    algo_.gpus.resize(at(table.ranks()));
    data_ = dataElements(algo_.collective, table.elements());
  }

  Result<Algo> run() {
    if (algo_.collective == Collective::kSendRecv) {
      return errorf(Code::kUnsupported, "MSCCL has no collective like {}",
                    collectiveName(algo_.collective));
    }
    if (table_.size() == 0) {
      return errorf(Code::kUnsupported, "a schedule without operations has no MSCCL algorithm");
    }
    unit_ = commonUnit(table_, data_);
    const std::int64_t chunks = data_ / unit_;
    if (chunks > kMaxChunks) {
      return errorf(Code::kUnsupported,
                    "all that the pieces have in common are units of {} elements, {} chunks of the "
                    "buffer; MSCCL has equal chunks, {} at most. A size that ranks and segments "
                    "divide makes pieces equal; unequal shares need a size that their sum divides",
                    unit_, chunks, kMaxChunks);
    }
    algo_.chunks = static_cast<int>(chunks);
    RETURN_IF_ERROR(chooseChannels());
    for (int rank = 0; rank < table_.ranks(); ++rank) placeOperations(rank);
    for (int rank = 0; rank < table_.ranks(); ++rank) RETURN_IF_ERROR(writeSteps(rank));
    return std::move(algo_);
  }

 private:
  enum Direction { kSends, kReceives, kCopies };

  /// A step that moves data: thread block of its rank, and how many such steps are before it there.
  struct Move {
    int block = 0;
    int number = 0;
    auto operator<=>(const Move&) const = default;
  };
  /// What a thread block has waited for: by block the last move, and each that was named.
  struct Behind {
    std::vector<int> moves;
    std::set<Move> named;
  };

  /// A channel for each lane; where there are too many lanes, as in a schedule that was read from a
  /// file, several lanes share one whose messages are of different ranks. Such a file has no
  /// orders: a channel has no order that is that of one lane.
  Status chooseChannels() {
    channelOf_.clear();
    ordered_ = table_.lanes() <= kMaxChannels;
    std::vector<std::set<std::pair<int, int>>> used;  // by channel: who sends to whom
    for (int lane = 0; lane < table_.lanes(); ++lane) {
      std::size_t channel = at(lane);
      const std::set<std::pair<int, int>> own = connectionsOf(lane);
      if (!ordered_) {
        const auto disjoint = [&](const auto& taken) {
          return std::ranges::none_of(own, [&](const auto& one) { return taken.contains(one); });
        };
        channel = at(static_cast<int>(std::ranges::find_if(used, disjoint) - used.begin()));
      }
      if (channel >= used.size()) used.resize(channel + 1);
      used[channel].insert(own.begin(), own.end());
      channelOf_.push_back(static_cast<int>(channel));
    }
    algo_.channels = static_cast<int>(used.size());
    if (algo_.channels <= kMaxChannels) return okStatus();
    return errorf(Code::kUnsupported, "{} lanes need {} channels; MSCCL has {}", table_.lanes(),
                  algo_.channels, kMaxChannels);
  }

  std::set<std::pair<int, int>> connectionsOf(int lane) const {
    std::set<std::pair<int, int>> connections;
    for (int rank = 0; rank < table_.ranks(); ++rank) {
      const int chain = rank * table_.lanes() + lane;
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        if (table_[op].kind == OpKind::kSend) connections.insert({rank, table_[op].peer});
      }
    }
    return connections;
  }

  /// Says which thread block and which step among those that move data an operation becomes.
  void placeOperations(int rank) {
    std::map<std::tuple<int, Direction, int>, int> blocks;
    auto& made = algo_.gpus[at(rank)].blocks;
    std::vector<int> used;
    for (int lane = 0; lane < table_.lanes(); ++lane) {
      const int chain = rank * table_.lanes() + lane;
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        const OpTable::Entry& entry = table_[op];
        if (entry.piece.count == 0) continue;  // is done at once
        const Direction direction = entry.kind == OpKind::kCopy   ? kCopies
                                    : entry.kind == OpKind::kSend ? kSends
                                                                  : kReceives;
        const int peer = direction == kCopies ? -1 : entry.peer;
        const auto [block, isNew] =
            blocks.try_emplace({lane, direction, peer}, static_cast<int>(made.size()));
        if (isNew) {
          made.push_back({.sendPeer = direction == kSends ? peer : -1,
                          .recvPeer = direction == kReceives ? peer : -1,
                          .channel = channelOf_[at(lane)],
                          .steps = {}});
          used.push_back(0);
        }
        placeOf_[at(op)] = {block->second, used[at(block->second)]++};
      }
    }
  }

  Status writeSteps(int rank) {
    auto& blocks = algo_.gpus[at(rank)].blocks;
    const std::size_t count = blocks.size();
    behind_.assign(count, {std::vector<int>(count, -1), {}});
    stepOf_.assign(count, {});
    for (int op : inOrderOfWaits(rank)) {
      const OpTable::Entry& entry = table_[op];
      const std::set<Move> named = namedWaits(op, count);
      if (entry.piece.count == 0) continue;
      const int block = placeOf_[at(op)].block;
      std::vector<Move> moves = newWaits(behind_[at(block)], due_[at(entry.lane)], named);
      // That a reduction comes first says nothing of what follows in the lane.
      if (entry.after >= 0) moves.push_back(placeOf_[at(entry.after)]);
      std::vector<Step> waits;
      for (const Move& waited : moves) {
        Step& wait = waits.emplace_back();
        wait.waitBlock = waited.block;
        wait.waitStep = stepOf_[at(waited.block)][at(waited.number)];
        blocks[at(waited.block)].steps[at(wait.waitStep)].waitedFor = true;
      }
      Step step = moveOf(entry);
      if (ordered_) step.order = table_.positionOf(op);
      if (!waits.empty()) {
        step.waitBlock = waits.back().waitBlock;
        step.waitStep = waits.back().waitStep;
        waits.pop_back();
      }
      auto& steps = blocks[at(block)].steps;
      steps.insert(steps.end(), waits.begin(), waits.end());
      stepOf_[at(block)].push_back(static_cast<int>(steps.size()));
      steps.push_back(step);
      if (static_cast<int>(steps.size()) > kMaxSteps) {
        return errorf(Code::kUnsupported,
                      "a thread block of rank {} needs more than {} steps; use fewer segments or "
                      "ranks",
                      rank, kMaxSteps);
      }
      if (step.count > kMaxCount) {
        return errorf(Code::kUnsupported,
                      "a message of {} chunks of {} elements; MSCCL moves {} at most in a step. "
                      "Pieces of more equal sizes have larger chunks",
                      step.count, unit_, kMaxCount);
      }
    }
    std::vector<int> perChannel(at(algo_.channels), 0);
    for (const ThreadBlock& block : blocks) {
      if (++perChannel[at(block.channel)] > kMaxBlocksPerChannel) {
        return errorf(Code::kUnsupported,
                      "rank {} needs more than {} thread blocks in a channel: it has a connection "
                      "with too many ranks",
                      rank, kMaxBlocksPerChannel);
      }
    }
    due_.clear();
    return okStatus();
  }

  /// The operations of a rank, lanes in order, waits before what waits for them.
  std::vector<int> inOrderOfWaits(int rank) {
    due_.assign(at(table_.lanes()), {});
    std::vector<int> order;
    std::vector<int> cursor;
    std::vector<bool> written(at(table_.size()), false);
    const int firstChain = rank * table_.lanes();
    for (int lane = 0; lane < table_.lanes(); ++lane) {
      cursor.push_back(table_.firstOf(firstChain + lane));
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (int lane = 0; lane < table_.lanes(); ++lane) {
        int& op = cursor[at(lane)];
        for (; op < table_.firstOf(firstChain + lane + 1); ++op) {
          const OpTable::Entry& entry = table_[op];
          bool ready = true;
          for (int i = 0; i < entry.waitCount; ++i) ready &= written[at(entry.waitOp[at(i)])];
          if (!ready) break;
          written[at(op)] = moved = true;
          order.push_back(op);
        }
      }
    }
    return order;
  }

  /// What the operation itself waits for, which also becomes due in its lane.
  std::set<Move> namedWaits(int op, std::size_t blocks) {
    const OpTable::Entry& entry = table_[op];
    std::vector<int>& due = due_[at(entry.lane)];
    due.resize(blocks, -1);
    std::set<Move> named;
    const auto add = [&](int waited) {
      if (table_[waited].piece.count > 0) named.insert(placeOf_[at(waited)]);
    };
    for (int i = 0; i < entry.waitCount; ++i) {
      if (entry.waitElements[at(i)] > 0) add(entry.waitOp[at(i)]);
    }
    for (const Move& waited : named) {
      due[at(waited.block)] = std::max(due[at(waited.block)], waited.number);
    }
    return named;
  }

  /// Of all that a step of a thread block comes after, what the block has not waited for yet. A
  /// wait that is named is repeated where it is implied, and comes last: an operation has room
  /// for two.
  static std::vector<Move> newWaits(Behind& behind, const std::vector<int>& due,
                                    const std::set<Move>& named) {
    std::vector<Move> waits;
    for (std::size_t block = 0; block < due.size(); ++block) {
      if (due[block] <= behind.moves[block]) continue;
      behind.moves[block] = due[block];
      const Move waited{static_cast<int>(block), due[block]};
      if (!named.contains(waited)) waits.push_back(waited);
    }
    for (const Move& waited : named) {
      if (behind.named.insert(waited).second) waits.push_back(waited);
    }
    return waits;
  }

  Step moveOf(const OpTable::Entry& entry) const {
    Step step;
    step.count = static_cast<int>(entry.piece.count / unit_);
    switch (entry.kind) {
      case OpKind::kSend:
        step.type = StepType::kSend;
        step.source = placeAt(entry.piece);
        break;
      case OpKind::kRecv:
        step.type = StepType::kRecv;
        step.destination = placeAt(entry.piece);
        break;
      case OpKind::kRecvReduce:
        step.type = StepType::kRecvReduceCopy;
        step.source = step.destination = placeAt(entry.piece);
        break;
      case OpKind::kCopy:
        step.type = StepType::kCopy;
        step.source = placeAt(entry.source);
        step.destination = placeAt(entry.piece);
        break;
    }
    return step;
  }

  /// In place, the whole buffer is the output of an AllGather and the input of all others.
  Place placeAt(const Piece& piece) const {
    const bool inOutput = hasOutput(algo_.collective) ? piece.offset >= data_
                                                      : algo_.collective == Collective::kAllGather;
    const std::int64_t offset =
        hasOutput(algo_.collective) && inOutput ? piece.offset - data_ : piece.offset;
    return {inOutput ? Buffer::kOutput : Buffer::kInput, static_cast<int>(offset / unit_)};
  }

  const OpTable& table_;
  Algo algo_;
  std::int64_t data_ = 0;
  std::int64_t unit_ = 1;
  std::vector<Move> placeOf_;   ///< of each operation that moves data
  std::vector<int> channelOf_;  ///< of each lane
  bool ordered_ = true;         ///< a channel is a lane, and its steps say their place in it
  // Of the rank in hand.
  std::vector<std::vector<int>> due_;     ///< by lane and block: the last move to come after, or -1
  std::vector<Behind> behind_;            ///< by block
  std::vector<std::vector<int>> stepOf_;  ///< by block and move
};

/// What the parser says against the text of the algorithm. A build that writes none has none.
Status parses(const Algo& algo) {
  const auto text = toXml(algo);
  if (!text.ok()) return text.status().code() == Code::kUnsupported ? okStatus() : text.status();
  return fromXml(*text).status();
}

/// Whether a reader of the file has a right schedule.
bool comesBackRight(const Algo& algo, std::int64_t data) {
  const auto read = importSchedule(algo, data);
  if (!read.ok()) return false;
  const auto report = verifySchedule(**read);
  return report.ok() && report->ok();
}

}  // namespace

Result<Algo> exportSchedule(const Schedule& schedule) {
  Problems problems;
  ASSIGN_OR_RETURN(const OpTable table, OpTable::load(schedule, problems));
  if (!problems.empty()) {
    const Problem& first = problems.kept().front();
    return errorf(Code::kInvalidArgument, "the schedule is wrong: rank {} lane {} op {} {}",
                  first.rank, first.lane, first.op, first.text);
  }
  ASSIGN_OR_RETURN(Algo algo, Exporter(schedule, table).run());
  if (const Status parsed = parses(algo); !parsed.ok()) {
    return errorf(Code::kUnsupported, "{} makes a file that is refused when it is read back: {}",
                  schedule.algorithm(), parsed.message());
  }
  const std::int64_t data = dataElements(schedule.collective(), table.elements());
  if (comesBackRight(algo, data)) return algo;
  // Lanes that were read from a file of others may order more than one place in a lane can say.
  for (Gpu& gpu : algo.gpus) {
    for (ThreadBlock& block : gpu.blocks) {
      for (Step& step : block.steps) step.order = -1;
    }
  }
  if (comesBackRight(algo, data)) return algo;
  return errorf(Code::kUnsupported,
                "the order of the operations of {} is more than the waits of MSCCL can say",
                schedule.algorithm());
}

}  // namespace faultline::schedule::msccl

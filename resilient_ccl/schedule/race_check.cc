#include "resilient_ccl/schedule/race_check.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include "resilient_ccl/schedule/index.h"

namespace faultline::schedule {
namespace {

constexpr std::int64_t kStepsOfTouch = 8;
constexpr std::int64_t kStepsOfCell = 2;
constexpr std::int64_t kStepsOfPair = 8;
constexpr std::int64_t kStepsOfProblem = 512;

/// Groups of lanes that have to be looked at together: those that share elements or waits.
std::vector<std::vector<int>> groupLanes(const OpTable& table, const Intervals& intervals,
                                         ProofWork& work) {
  std::vector<int> parent(at(table.lanes()));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int lane) {
    while (parent[at(lane)] != lane) lane = parent[at(lane)] = parent[at(parent[at(lane)])];
    return lane;
  };
  ProofTable room(work);
  if (!room.fits(intervals.count() * static_cast<std::int64_t>(sizeof(int)))) return {};
  std::vector<int> laneOfInterval(at(intervals.count()), -1);
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    const auto touch = [&](int first, int count) {
      for (int i = first; i < first + count; ++i) {
        int& lane = laneOfInterval[at(i)];
        if (lane < 0) lane = entry.lane;
        parent[at(root(lane))] = root(entry.lane);
      }
    };
    const int count = intervals.end(op) - intervals.first(op);
    if (!work.spend(kStepsOfTouch * (1 + count))) return {};
    touch(intervals.first(op), count);
    if (entry.kind == OpKind::kCopy) touch(intervals.firstSource(op), count);
    for (int i = 0; i < entry.waitCount; ++i) {
      parent[at(root(table[entry.waitOp[at(i)]].lane))] = root(entry.lane);
    }
  }
  std::vector<std::vector<int>> groups(at(table.lanes()));
  for (int lane = 0; lane < table.lanes(); ++lane) groups[at(root(lane))].push_back(lane);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

/// What the events of one group of lanes can reach, seen from some ranks: for each event and each
/// chain of interest, the first operation of the chain whose issue comes after the event.
class Reach {
 public:
  /// `events`: those of the lanes, in order. `row` has a place for every event of the schedule and
  /// is shared by the groups, which have no event in common.
  Reach(const OpTable& table, const EventOrder& order, const std::vector<int>& lanes,
        const std::vector<int>& events, std::vector<int>& row, ProofWork& work)
      : table_(table), lanes_(lanes), row_(row), work_(work), room_(work) {
    nodes_.reserve(events.size());
    for (const int event : events) {
      const auto [op, mark] = order[event];
      row_[at(event)] = static_cast<int>(nodes_.size());
      Node node;
      node.issuedOp = mark == EventOrder::kIssued ? op : -1;
      node.predecessors = order.predecessors(event, node.before);
      for (int i = 0; i < node.predecessors; ++i) {
        node.before[at(i)] = row_[at(node.before[at(i)])];
      }
      nodes_.push_back(node);
    }
  }

  /// Looks from the ranks from `firstRank` on, from as many as are worth one pass, and returns the
  /// rank after the last of them. Chains of interest: those of these ranks, and those that send to
  /// them. The work is over when even the table of one rank does not fit.
  int compute(int firstRank) {
    column_.assign(at(table_.chains()), -1);
    columns_.clear();
    addColumns(firstRank);
    int rank = firstRank + 1;
    for (; rank < table_.ranks(); ++rank) {
      const std::size_t before = columns_.size();
      addColumns(rank);
      if (bytes() <= std::min(kBytesOfPass, room_.most())) continue;
      for (; columns_.size() > before; columns_.pop_back()) column_[at(columns_.back())] = -1;
      break;
    }
    if (!room_.fits(bytes()) || !work_.spend(kStepsOfCell * cells())) return rank;
    first_.assign(at(cells()), kNever);
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      const Node& node = nodes_[i];
      const std::span<int> row(first_.data() + i * columns_.size(), columns_.size());
      if (node.issuedOp >= 0) {
        if (const int column = column_[at(table_.chainOf(node.issuedOp))]; column >= 0) {
          row[at(column)] = node.issuedOp;
        }
      }
      for (int k = 0; k < node.predecessors; ++k) {
        int* before = first_.data() + at(node.before[at(k)]) * columns_.size();
        const int* const after = row.data();  // unchecked: most of the time goes here
        for (std::size_t c = 0; c < row.size(); ++c) before[c] = std::min(before[c], after[c]);
      }
    }
    return rank;
  }

  /// Whether operation `op` of one of the ranks can begin only after `event`.
  bool beginsAfter(int op, int event) const {
    const int* row = first_.data() + at(row_[at(event)]) * columns_.size();
    const auto issuedAfter = [&](int x) { return row[column_[at(table_.chainOf(x))]] <= x; };
    // A receive writes only when the message has been sent as well.
    return issuedAfter(op) || (isReceive(table_[op].kind) && issuedAfter(table_[op].partner));
  }

 private:
  static constexpr int kNever = std::numeric_limits<int>::max();
  /// Of the table below, for several ranks. More of them at once mean fewer passes over the events.
  static constexpr std::int64_t kBytesOfPass = std::int64_t{1} << 28;

  struct Node {
    int issuedOp = -1;  ///< the operation, if the event is its issue
    int predecessors = 0;
    std::array<int, EventOrder::kMaxPredecessors> before{};  ///< as rows
  };

  std::int64_t cells() const { return std::ssize(nodes_) * std::ssize(columns_); }
  std::int64_t bytes() const { return cells() * static_cast<std::int64_t>(sizeof(first_[0])); }

  void addColumns(int rank) {
    const auto add = [&](int chain) {
      if (column_[at(chain)] >= 0) return;
      column_[at(chain)] = static_cast<int>(columns_.size());
      columns_.push_back(chain);
    };
    for (const int lane : lanes_) {
      const int chain = rank * table_.lanes() + lane;
      add(chain);
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        if (isReceive(table_[op].kind)) add(table_.chainOf(table_[op].partner));
      }
    }
  }

  const OpTable& table_;
  const std::vector<int>& lanes_;
  std::vector<int>& row_;  ///< event -> its row
  ProofWork& work_;
  ProofTable room_;           ///< of `first_`
  std::vector<Node> nodes_;   ///< by row
  std::vector<int> column_;   ///< chain -> its column, or -1
  std::vector<int> columns_;  ///< column -> its chain
  std::vector<int> first_;    ///< rows x columns
};

class RaceCheck {
 public:
  RaceCheck(const OpTable& table, const Intervals& intervals, const EventOrder& order,
            ProofWork& work, Problems& problems)
      : table_(table),
        intervals_(intervals),
        order_(order),
        work_(work),
        problems_(problems),
        room_(work) {}

  void checkRank(int rank, const std::vector<int>& lanes, const Reach& reach) {
    ProofTable room(work_);
    if (!room.fits(accessesOf(rank, lanes) * static_cast<std::int64_t>(sizeof(Access)))) return;
    if (!room_.fits(intervals_.count() * static_cast<std::int64_t>(sizeof(accesses_[0])))) return;
    accesses_.resize(at(intervals_.count()));
    for (const int lane : lanes) {
      const int chain = rank * table_.lanes() + lane;
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        const int count = intervals_.end(op) - intervals_.first(op);
        const bool sends = table_[op].kind == OpKind::kSend;
        addAccesses(op, intervals_.first(op), count, /*reads=*/sends);
        if (table_[op].kind == OpKind::kCopy) {
          addAccesses(op, intervals_.firstSource(op), count, /*reads=*/true);
        }
      }
    }
    for (const int interval : used_) {
      const auto& all = accesses_[at(interval)];
      for (std::size_t a = 0; a < all.size(); ++a) {
        for (std::size_t b = a + 1; b < all.size(); ++b) {
          if (!work_.spend(kStepsOfPair) || problems_.areEnough()) return;
          if (all[a].reads && all[b].reads) continue;
          checkPair(all[a].op, all[b].op, intervals_.piece(interval), reach);
        }
      }
      std::vector<Access>().swap(accesses_[at(interval)]);  // and its memory
    }
    used_.clear();
  }

 private:
  struct Access {
    int op;
    bool reads;
  };

  std::int64_t accessesOf(int rank, const std::vector<int>& lanes) const {
    std::int64_t all = 0;
    for (const int lane : lanes) {
      const int chain = rank * table_.lanes() + lane;
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        const std::int64_t count = intervals_.end(op) - intervals_.first(op);
        all += table_[op].kind == OpKind::kCopy ? 2 * count : count;
      }
    }
    return all;
  }

  void addAccesses(int op, int first, int count, bool reads) {
    if (!work_.spend(kStepsOfTouch * count)) return;
    for (int i = first; i < first + count; ++i) {
      if (accesses_[at(i)].empty()) used_.push_back(i);
      accesses_[at(i)].push_back({op, reads});
    }
  }

  void checkPair(int a, int b, Piece where, const Reach& reach) {
    if (ordered(a, b, where, reach) || ordered(b, a, where, reach)) return;
    if (!reported_.insert({a, b}).second || !work_.spend(kStepsOfProblem)) return;
    problems_.add([&] {
      return table_.problemAt(
          b, fmt::format("{} of elements [{}, {}) can run at the same time as the {} of lane {} op "
                         "{}: nothing orders them",
                         kindName(table_[b].kind), where.offset, where.offset + where.count,
                         kindName(table_[a].kind), table_[a].lane, table_.positionOf(a)));
    });
  }

  bool ordered(int earlier, int later, Piece where, const Reach& reach) const {
    for (int op = table_[later].after; op >= earlier; op = table_[op].after) {
      if (op == earlier || !work_.spend(kStepsOfPair)) return true;
    }
    // Of a copy only "all of it" is known for certain: its source is elsewhere.
    const Piece piece = table_[earlier].piece;
    const bool copies = table_[earlier].kind == OpKind::kCopy;
    const std::int64_t end = copies ? piece.count : where.offset + where.count - piece.offset;
    return reach.beginsAfter(later, order_.doneWith(earlier, end));
  }

  const OpTable& table_;
  const Intervals& intervals_;
  const EventOrder& order_;
  ProofWork& work_;
  Problems& problems_;
  ProofTable room_;                            ///< of the lists
  std::vector<std::vector<Access>> accesses_;  ///< per interval, of the rank at hand
  std::vector<int> used_;
  std::set<std::pair<int, int>> reported_;
};

}  // namespace

void findRaces(const OpTable& table, const Intervals& intervals, const EventOrder& order,
               ProofWork& work, Problems& problems) {
  RaceCheck check(table, intervals, order, work, problems);
  const std::vector<std::vector<int>> groups = groupLanes(table, intervals, work);
  if (work.isOver()) return;
  std::vector<std::size_t> groupOfLane(at(table.lanes()));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const int lane : groups[group]) groupOfLane[at(lane)] = group;
  }
  std::vector<std::vector<int>> events(groups.size());
  for (int event = 0; event < order.size(); ++event) {
    events[groupOfLane[at(table[order[event].op].lane)]].push_back(event);
  }
  std::vector<int> row(at(order.size()));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    Reach reach(table, order, groups[group], events[group], row, work);
    for (int rank = 0; rank < table.ranks();) {
      const int end = reach.compute(rank);
      for (; rank < end; ++rank) {
        check.checkRank(rank, groups[group], reach);
        if (work.isOver() || problems.areEnough()) return;
      }
      if (work.isOver()) return;
    }
  }
}

}  // namespace faultline::schedule

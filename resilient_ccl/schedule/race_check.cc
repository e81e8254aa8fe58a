#include "resilient_ccl/schedule/race_check.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace faultline::schedule {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Groups of lanes that have to be looked at together: those that share elements or waits.
std::vector<std::vector<int>> groupLanes(const OpTable& table, const Intervals& intervals) {
  std::vector<int> parent(at(table.lanes()));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int lane) {
    while (parent[at(lane)] != lane) lane = parent[at(lane)] = parent[at(parent[at(lane)])];
    return lane;
  };
  std::vector<int> laneOfInterval(at(intervals.count()), -1);
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    for (int i = intervals.first(op); i < intervals.end(op); ++i) {
      int& lane = laneOfInterval[at(i)];
      if (lane < 0) lane = entry.lane;
      parent[at(root(lane))] = root(entry.lane);
    }
    for (int i = 0; i < entry.waitCount; ++i) {
      parent[at(root(table[entry.waitOp[at(i)]].lane))] = root(entry.lane);
    }
  }
  std::vector<std::vector<int>> groups(at(table.lanes()));
  for (int lane = 0; lane < table.lanes(); ++lane) groups[at(root(lane))].push_back(lane);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

/// What the events of one group of lanes can reach, seen from one rank: for each event and each
/// chain of interest, the first operation of the chain whose issue comes after the event.
class Reach {
 public:
  Reach(const OpTable& table, const EventOrder& order, const std::vector<int>& events)
      : table_(table), order_(order), events_(events), local_(at(order.size()), -1) {
    for (std::size_t i = 0; i < events.size(); ++i) local_[at(events[i])] = static_cast<int>(i);
  }

  /// Chains of interest: those of `rank` in `lanes`, and those that send to it.
  void compute(int rank, const std::vector<int>& lanes) {
    column_.clear();
    column_.resize(at(table_.chains()), -1);
    columns_ = 0;
    const auto addColumn = [&](int chain) {
      if (column_[at(chain)] < 0) column_[at(chain)] = columns_++;
    };
    for (const int lane : lanes) {
      const int chain = rank * table_.lanes() + lane;
      addColumn(chain);
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        if (isReceive(table_[op].kind)) addColumn(table_.chainOf(table_[op].partner));
      }
    }
    first_.assign(events_.size() * at(columns_), kNever);
    std::array<int, EventOrder::kMaxPredecessors> predecessors{};
    for (std::size_t i = events_.size(); i-- > 0;) {
      int* row = first_.data() + i * at(columns_);
      const auto [op, mark] = order_[events_[i]];
      if (mark == EventOrder::kIssued && column_[at(table_.chainOf(op))] >= 0) {
        row[column_[at(table_.chainOf(op))]] = op;
      }
      const int count = order_.predecessors(events_[i], predecessors);
      for (int k = 0; k < count; ++k) {
        int* before = first_.data() + at(local_[at(predecessors[at(k)])]) * at(columns_);
        for (int c = 0; c < columns_; ++c) before[c] = std::min(before[c], row[c]);
      }
    }
  }

  /// Whether operation `op` of the rank can begin only after `event`.
  bool beginsAfter(int op, int event) const {
    const int* row = first_.data() + at(local_[at(event)]) * at(columns_);
    const auto issuedAfter = [&](int x) { return row[column_[at(table_.chainOf(x))]] <= x; };
    // A receive writes only when the message has been sent as well.
    return issuedAfter(op) || (isReceive(table_[op].kind) && issuedAfter(table_[op].partner));
  }

 private:
  static constexpr int kNever = std::numeric_limits<int>::max();

  const OpTable& table_;
  const EventOrder& order_;
  const std::vector<int>& events_;
  std::vector<int> local_;   ///< event -> its row
  std::vector<int> column_;  ///< chain -> its column, or -1
  int columns_ = 0;
  std::vector<int> first_;
};

class RaceCheck {
 public:
  RaceCheck(const OpTable& table, const Intervals& intervals, const EventOrder& order,
            std::vector<Problem>& problems)
      : table_(table), intervals_(intervals), order_(order), problems_(problems) {}

  void checkRank(int rank, const std::vector<int>& lanes, const Reach& reach) {
    accesses_.resize(at(intervals_.count()));
    for (const int lane : lanes) {
      const int chain = rank * table_.lanes() + lane;
      for (int op = table_.firstOf(chain); op < table_.firstOf(chain + 1); ++op) {
        for (int i = intervals_.first(op); i < intervals_.end(op); ++i) {
          if (accesses_[at(i)].empty()) used_.push_back(i);
          accesses_[at(i)].push_back(op);
        }
      }
    }
    for (const int interval : used_) {
      const auto& ops = accesses_[at(interval)];
      for (std::size_t a = 0; a < ops.size(); ++a) {
        for (std::size_t b = a + 1; b < ops.size(); ++b) {
          checkPair(ops[a], ops[b], intervals_.piece(interval), reach);
        }
      }
      accesses_[at(interval)].clear();
    }
    used_.clear();
  }

 private:
  void checkPair(int a, int b, Piece where, const Reach& reach) {
    const bool bothRead = table_[a].kind == OpKind::kSend && table_[b].kind == OpKind::kSend;
    if (bothRead || ordered(a, b, where, reach) || ordered(b, a, where, reach)) return;
    if (!reported_.insert({a, b}).second) return;
    problems_.push_back(table_.problemAt(
        b, fmt::format("{} of elements [{}, {}) can run at the same time as the {} of lane {} op "
                       "{}: nothing orders them",
                       kindName(table_[b].kind), where.offset, where.offset + where.count,
                       kindName(table_[a].kind), table_[a].lane, table_.positionOf(a))));
  }

  bool ordered(int earlier, int later, Piece where, const Reach& reach) const {
    const std::int64_t end = where.offset + where.count - table_[earlier].piece.offset;
    return reach.beginsAfter(later, order_.doneWith(earlier, end));
  }

  const OpTable& table_;
  const Intervals& intervals_;
  const EventOrder& order_;
  std::vector<Problem>& problems_;
  std::vector<std::vector<int>> accesses_;  ///< per interval, operations of the rank at hand
  std::vector<int> used_;
  std::set<std::pair<int, int>> reported_;
};

}  // namespace

void findRaces(const OpTable& table, const Intervals& intervals, const EventOrder& order,
               std::vector<Problem>& problems) {
  RaceCheck check(table, intervals, order, problems);
  for (const std::vector<int>& lanes : groupLanes(table, intervals)) {
    std::vector<bool> inGroup(at(table.lanes()), false);
    for (const int lane : lanes) inGroup[at(lane)] = true;
    std::vector<int> events;
    for (int event = 0; event < order.size(); ++event) {
      if (inGroup[at(table[order[event].op].lane)]) events.push_back(event);
    }
    Reach reach(table, order, events);
    for (int rank = 0; rank < table.ranks(); ++rank) {
      reach.compute(rank, lanes);
      check.checkRank(rank, lanes, reach);
    }
  }
}

}  // namespace faultline::schedule

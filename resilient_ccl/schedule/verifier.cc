#include "resilient_ccl/schedule/verifier.h"

#include <unordered_map>

#include "resilient_ccl/schedule/event_order.h"
#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/intervals.h"
#include "resilient_ccl/schedule/race_check.h"
#include "resilient_ccl/schedule/replay.h"
#include "resilient_ccl/schedule/symbolic_sum.h"

namespace faultline::schedule {
namespace {

/// What every rank holds in every interval of its buffer, as symbols.
class Holdings {
 public:
  Holdings(const OpTable& table, const Intervals& intervals)
      : table_(table),
        intervals_(intervals),
        sums_(table.ranks()),
        held_(at(table.ranks()) * at(intervals.count())),
        writer_(held_.size(), -1) {
    for (int rank = 0; rank < table.ranks(); ++rank) {
      for (int i = 0; i < intervals.count(); ++i) held_[slot(rank, i)] = sums_.leaf(rank);
    }
  }

  /// Reads what a transfer (index of the send, or of the copy) moves; a copy writes it as well.
  void read(int op, std::vector<Problem>& problems) {
    const OpTable::Entry& source = table_[op];
    if (source.kind == OpKind::kCopy) {
      read(source.rank, source.source, op, problems);
      write(op);
    } else {
      read(source.rank, source.piece, source.partner, problems);
    }
  }

  /// Writes or adds what was read for a receive.
  void write(int into) {
    const OpTable::Entry& target = table_[into];
    const auto arrived = arrived_.find(into);
    if (arrived == arrived_.end()) return;
    std::size_t next = 0;
    for (int i = intervals_.first(into); i < intervals_.end(into); ++i, ++next) {
      SymbolicSums::Id& held = held_[slot(target.rank, i)];
      const SymbolicSums::Id arriving = arrived->second[next];
      held = target.kind == OpKind::kRecvReduce ? sums_.add(held, arriving) : arriving;
      writer_[slot(target.rank, i)] = into;
    }
    arrived_.erase(arrived);
  }

  void checkResults(std::vector<Problem>& problems) const {
    for (int rank = 0; rank < table_.ranks(); ++rank) {
      int i = 0;
      while (i < intervals_.count()) {
        // Neighbouring intervals with one fate make one problem.
        int end = i + 1;
        while (end < intervals_.count() && held_[slot(rank, end)] == held_[slot(rank, i)] &&
               held_[slot(0, end)] == held_[slot(0, i)] &&
               writer_[slot(rank, end)] == writer_[slot(rank, i)]) {
          ++end;
        }
        const std::string fault = faultOf(rank, i);
        if (!fault.empty()) report(rank, i, end, fault, problems);
        i = end;
      }
    }
  }

 private:
  std::size_t slot(int rank, int interval) const {
    return at(rank) * at(intervals_.count()) + at(interval);
  }

  void read(int fromRank, Piece from, int into, std::vector<Problem>& problems) {
    const OpTable::Entry& target = table_[into];
    if (target.piece.count == 0) return;
    if (target.piece.offset != from.offset) {
      problems.push_back(table_.problemAt(
          into, fmt::format("puts elements [{}, +{}) of rank {} at offset {}", from.offset,
                            from.count, fromRank, target.piece.offset)));
      return;
    }
    std::vector<SymbolicSums::Id>& arriving = arrived_[into];
    for (int i = intervals_.first(into); i < intervals_.end(into); ++i) {
      arriving.push_back(held_[slot(fromRank, i)]);
    }
  }

  std::string faultOf(int rank, int interval) const {
    const SymbolicSums::Id sum = held_[slot(rank, interval)];
    if (const int twice = sums_.duplicated(sum); twice >= 0) {
      return fmt::format("contain the contribution of rank {} more than once", twice);
    }
    if (const int absent = sums_.missing(sum); absent >= 0) {
      return fmt::format("lack the contribution of rank {}", absent);
    }
    if (sum != held_[slot(0, interval)] && sums_.complete(held_[slot(0, interval)])) {
      return "are summed in another order than on rank 0: results are not bit-identical";
    }
    return "";
  }

  void report(int rank, int first, int end, const std::string& fault,
              std::vector<Problem>& problems) const {
    const Piece last = intervals_.piece(end - 1);
    std::string text = fmt::format("in the end elements [{}, {}) {}",
                                   intervals_.piece(first).offset, last.offset + last.count, fault);
    const int writer = writer_[slot(rank, first)];
    if (writer < 0) {
      problems.push_back({rank, -1, -1, std::move(text) + "; nothing was ever written to them"});
    } else {
      problems.push_back(table_.problemAt(writer, std::move(text) + "; last written here"));
    }
  }

  const OpTable& table_;
  const Intervals& intervals_;
  SymbolicSums sums_;
  std::vector<SymbolicSums::Id> held_;
  std::vector<int> writer_;  ///< last operation that wrote, or -1
  std::unordered_map<int, std::vector<SymbolicSums::Id>> arrived_;  ///< receive -> what it brings
};

/// Names what the first stuck operation of every lane is waiting for.
void reportStuck(const OpTable& table, const Replay& replay, std::string_view when,
                 std::vector<Problem>& problems) {
  for (int chain = 0; chain < table.chains(); ++chain) {
    for (int op = table.firstOf(chain); op < table.firstOf(chain + 1); ++op) {
      if (replay.isDone(op)) continue;
      const OpTable::Entry& entry = table[op];
      std::string why = "its turn in the lane";
      if (replay.isHeld(op)) {
        why = fmt::format("the reduction of op {}", table.positionOf(entry.after));
      } else if (replay.isIssued(op)) {
        why = fmt::format("rank {} lane {} op {}, the other end", entry.peer,
                          table[entry.partner].lane, table.positionOf(entry.partner));
      }
      for (int i = 0; i < entry.waitCount; ++i) {
        const int target = entry.waitOp[at(i)];
        if (!replay.isDone(target)) {
          why = fmt::format("lane {} op {}", table[target].lane, table.positionOf(target));
        }
      }
      problems.push_back(table.problemAt(
          op, fmt::format("deadlock{}: {} waits for {}", when, kindName(entry.kind), why)));
      break;
    }
  }
}

/// Runs the schedule to its end; `moved` is called for each transfer when it leaves, `received` for
/// each receive when it is done. False when it gets stuck.
template <typename Issued, typename Moved, typename Received>
bool run(Replay& replay, Issued issued, Moved moved, Received received) {
  while (true) {
    for (const int op : replay.takeIssued()) issued(op);
    const std::vector<int> movable = replay.takeMovable();
    if (movable.empty()) return replay.finished();
    for (const int op : movable) {
      moved(op);
      replay.complete(op);
      for (const int receive : replay.takeReceived()) received(receive);
      for (const int next : replay.takeIssued()) issued(next);
    }
  }
}

void verifyTable(const OpTable& table, const VerifyOptions& options,
                 std::vector<Problem>& problems) {
  const Intervals intervals(table);
  Holdings holdings(table, intervals);
  EventOrder order(table);
  Replay replay(table, 0);
  const bool finished = run(
      replay, [&](int op) { order.addIssue(op); },
      [&](int op) {
        order.addProgress(op);
        holdings.read(op, problems);
      },
      [&](int op) {
        order.addProgress(op);
        holdings.write(op);
      });
  if (!finished) {
    reportStuck(table, replay, "", problems);
    return;
  }
  if (options.window > 0) {
    Replay narrow(table, options.window);
    const auto ignore = [](int) {};
    if (!run(narrow, ignore, ignore, ignore)) {
      reportStuck(table, narrow, fmt::format(" with a window of {}", options.window), problems);
    }
  }
  findRaces(table, intervals, order, problems);
  holdings.checkResults(problems);
}

}  // namespace

Result<VerifyReport> verifyAllReduce(const Schedule& schedule, const VerifyOptions& options) {
  VerifyReport report;
  report.ranks = schedule.ranks();
  ASSIGN_OR_RETURN(const OpTable table, OpTable::load(schedule, report.problems));
  report.operations = table.size();
  if (report.problems.empty()) verifyTable(table, options, report.problems);
  const auto limit = at(options.maxProblems);
  if (report.problems.size() > limit) {
    report.moreProblems = static_cast<std::int64_t>(report.problems.size() - limit);
    report.problems.resize(limit);
  }
  return report;
}

}  // namespace faultline::schedule

#include "resilient_ccl/comm/completions.h"

#include <unordered_map>

#include "resilient_ccl/schedule/intervals.h"
#include "resilient_ccl/schedule/op_table.h"
#include "resilient_ccl/schedule/replay.h"

namespace faultline::comm {

using schedule::OpKind;
using schedule::OpTable;

namespace {

/// How many contributions each interval of each rank's buffer holds while a schedule is played.
class Contributions {
 public:
  Contributions(const OpTable& table, const schedule::Intervals& intervals)
      : table_(table),
        intervals_(intervals),
        held_(static_cast<std::size_t>(table.ranks()) * intervals.count(), 1) {}

  /// What a transfer, named by its send or copy, moves is read.
  void read(int op) {
    const OpTable::Entry& from = table_[op];
    const bool copies = from.kind == OpKind::kCopy;
    const int first = copies ? intervals_.firstSource(op) : intervals_.first(op);
    const int count = intervals_.end(op) - intervals_.first(op);
    std::vector<int>& values = moving_[copies ? op : from.partner];
    for (int i = 0; i < count; ++i) values.push_back(at(from.rank, first + i));
  }

  /// It is written, or added; whether the piece holds everything then.
  bool write(int op) {
    const OpTable::Entry& into = table_[op];
    const auto values = moving_.extract(op);
    bool complete = true;
    std::size_t next = 0;
    for (int i = intervals_.first(op); i < intervals_.end(op); ++i) {
      int& held = at(into.rank, i);
      const int value = values.mapped()[next++];
      held = into.kind == OpKind::kRecvReduce ? held + value : value;
      complete &= held == table_.ranks();
    }
    return complete && into.kind == OpKind::kRecvReduce && into.piece.count > 0;
  }

 private:
  int& at(int rank, int interval) {
    return held_[static_cast<std::size_t>(rank) * intervals_.count() + interval];
  }

  const OpTable& table_;
  const schedule::Intervals& intervals_;
  std::vector<int> held_;
  std::unordered_map<int, std::vector<int>> moving_;  // by the receive, or the copy
};

}  // namespace

Result<std::vector<std::vector<bool>>> findCompletions(const schedule::Schedule& schedule,
                                                       int rank) {
  schedule::Problems problems;
  ASSIGN_OR_RETURN(const OpTable table, OpTable::load(schedule, problems));
  if (!problems.empty()) {
    return errorf(Code::kInvalidArgument, "schedule {}: {}", schedule.algorithm(),
                  problems.kept().front().text);
  }
  schedule::ProofWork work = schedule::unlimitedWork();  // whoever proved it has bounded it
  schedule::ProofTable room(work);
  const schedule::Intervals intervals(table, {}, work, room);
  Contributions contributions(table, intervals);
  std::vector<std::vector<bool>> completes(schedule.lanes());
  for (int lane = 0; lane < schedule.lanes(); ++lane) {
    completes[lane].resize(schedule.opCount(rank, lane));
  }
  const auto write = [&](int op) {
    const OpTable::Entry& entry = table[op];
    if (contributions.write(op) && entry.rank == rank) {
      completes[entry.lane][table.positionOf(op)] = true;
    }
  };
  schedule::Replay replay(table, 0);
  for (auto movable = replay.takeMovable(); !movable.empty(); movable = replay.takeMovable()) {
    for (const int op : movable) {
      contributions.read(op);
      if (table[op].kind == OpKind::kCopy) write(op);
      replay.complete(op);
      for (const int receive : replay.takeReceived()) write(receive);
    }
  }
  if (!replay.finished()) {
    return errorf(Code::kInvalidArgument, "schedule {} never ends", schedule.algorithm());
  }
  return completes;
}

}  // namespace faultline::comm

#include "resilient_ccl/schedule/verifier.h"

#include <algorithm>
#include <unordered_map>

#include "resilient_ccl/schedule/event_order.h"
#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/intervals.h"
#include "resilient_ccl/schedule/proof_work.h"
#include "resilient_ccl/schedule/race_check.h"
#include "resilient_ccl/schedule/replay.h"
#include "resilient_ccl/schedule/split.h"
#include "resilient_ccl/schedule/symbolic_sum.h"

namespace faultline::schedule {
namespace {

constexpr std::int64_t kStepsOfMove = 64;
constexpr std::int64_t kStepsOfResult = 16;
// Of what is held: a sum, its place, its writer and its reader.
constexpr std::int64_t kBytesOfHeld = 32;

/// What an element has to be in the end.
struct Expected {
  enum What { kAnything, kSum, kDataOf } what = kAnything;
  int rank = 0;            ///< kDataOf: whose
  std::int64_t moved = 0;  ///< kDataOf: how far from its place in that rank's input
};

/// A collective as conditions on elements, before and after.
class Target {
 public:
  Target(Collective collective, int root, int ranks, std::int64_t elements)
      : collective_(collective),
        root_(root),
        ranks_(ranks),
        data_(dataElements(collective, elements)) {
    std::int64_t end = 0;
    for (int rank = 0; rank < ranks; ++rank)
      ends_.push_back(end += split({0, data_}, ranks, rank).count);
  }

  /// Where intervals have to be cut besides the boundaries of pieces.
  std::vector<std::int64_t> cuts() const {
    std::vector<std::int64_t> all = ends_;
    if (hasOutput(collective_)) {
      for (const std::int64_t end : ends_) all.push_back(data_ + end);
    }
    return all;
  }

  /// Whether a rank's buffer holds its data at this offset in the beginning.
  bool startsWith(int rank, std::int64_t offset) const {
    switch (collective_) {
      case Collective::kAllGather:
        return blockOf(offset) == rank;
      case Collective::kBroadcast:
        return rank == root_;
      default:
        return offset < data_;
    }
  }

  Expected endsWith(int rank, std::int64_t offset) const {
    switch (collective_) {
      case Collective::kAllReduce:
        return {Expected::kSum};
      case Collective::kReduceScatter:
        return {blockOf(offset) == rank ? Expected::kSum : Expected::kAnything};
      case Collective::kReduce:
        return {rank == root_ ? Expected::kSum : Expected::kAnything};
      case Collective::kAllGather:
        return {Expected::kDataOf, blockOf(offset)};
      case Collective::kBroadcast:
        return {Expected::kDataOf, root_};
      case Collective::kAllToAll: {
        if (offset < data_) return {};
        const int from = blockOf(offset - data_);
        return {Expected::kDataOf, from, data_ + (from - rank) * (data_ / ranks_)};
      }
      case Collective::kSendRecv:
        if (offset < data_) return {};
        return {Expected::kDataOf, (rank + ranks_ - 1) % ranks_, data_};
    }
    return {};
  }

 private:
  int blockOf(std::int64_t offset) const {
    return static_cast<int>(std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
  }

  Collective collective_;
  int root_;
  int ranks_;
  std::int64_t data_;
  std::vector<std::int64_t> ends_;  ///< of the blocks
};

/// What every rank holds in every interval of its buffer, as symbols.
class Holdings {
 public:
  /// `layers`: as the schedule has them. When the work is over it means nothing any more.
  Holdings(const OpTable& table, const Intervals& intervals, const Target& target,
           std::span<const int> layers, ProofWork& work)
      : table_(table),
        intervals_(intervals),
        target_(target),
        work_(work),
        roomOfSums_(work),
        roomUnderWay_(work),
        sums_(table.ranks()),
        held_(at(table.ranks()) * at(intervals.count())),
        writer_(held_.size(), -1),
        reader_(held_.size()),
        layerOf_(at(table.lanes())) {
    for (std::size_t i = 0; i < layers.size(); ++i) layerOf_[at(layers[i])] = i;
    for (int rank = 0; rank < table.ranks(); ++rank) {
      for (int i = 0; i < intervals.count(); ++i) {
        if (target.startsWith(rank, intervals.piece(i).offset)) {
          held_[slot(rank, i)].sum = sums_.leaf(rank);
        }
      }
    }
  }

  /// Reads what a transfer (index of the send, or of the copy) moves; a copy writes it as well.
  void read(int op, Problems& problems) {
    const OpTable::Entry& source = table_[op];
    if (source.kind == OpKind::kCopy) {
      read(op, intervals_.firstSource(op), source.source.offset, op, problems);
      write(op, problems);
    } else {
      read(op, intervals_.first(op), source.piece.offset, source.partner, problems);
    }
  }

  /// Writes or adds what was read for a receive.
  void write(int into, Problems& problems) {
    const OpTable::Entry& target = table_[into];
    const auto arrived = arrived_.find(into);
    if (arrived == arrived_.end()) return;
    std::size_t next = 0;
    for (int i = intervals_.first(into); i < intervals_.end(into); ++i, ++next) {
      Held& held = held_[slot(target.rank, i)];
      const Held arriving = arrived->second[next];
      checkLayer(into, i, i, /*writes=*/true, problems);
      if (target.kind != OpKind::kRecvReduce) {
        held = arriving;
      } else if (held.sum < 0 || arriving.sum < 0) {
        // The send has been complained of, or there is nothing to add to.
        if (held.sum < 0)
          complain(into, i, "adds to elements [{}, +{}), which hold nothing", problems);
      } else if (held.moved != arriving.moved) {
        complain(into, i, "adds elements of other places to [{}, +{})", problems);
      } else {
        held.sum = sums_.add(held.sum, arriving.sum);
        if (!roomOfSums_.fits(sums_.bytes())) return;
      }
      writer_[slot(target.rank, i)] = into;
    }
    underWay_ -= std::ssize(arrived->second);
    arrived_.erase(arrived);
    roomUnderWay_.fits(underWay_ * kBytesUnderWay);
  }

  void checkResults(Problems& problems) const {
    if (intervals_.count() == 0 || !work_.spend(kStepsOfResult * std::ssize(held_))) return;
    for (int rank = 0; rank < table_.ranks(); ++rank) {
      int i = 0;
      std::string fault = faultOf(rank, 0);
      while (i < intervals_.count()) {
        // Neighbouring intervals with one fate make one problem.
        int end = i + 1;
        std::string next;
        for (; end < intervals_.count(); ++end) {
          next = faultOf(rank, end);
          if (next != fault || writer_[slot(rank, end)] != writer_[slot(rank, i)]) break;
        }
        if (!fault.empty()) report(rank, i, end, fault, problems);
        i = end;
        fault = std::move(next);
      }
    }
  }

 private:
  /// A sum, and how far from their places in the ranks' inputs its elements are.
  struct Held {
    SymbolicSums::Id sum = -1;  ///< -1: nothing that means anything
    std::int64_t moved = 0;
    bool operator==(const Held&) const = default;
  };
  static constexpr auto kBytesUnderWay = static_cast<std::int64_t>(sizeof(Held));

  std::size_t slot(int rank, int interval) const {
    return at(rank) * at(intervals_.count()) + at(interval);
  }

  /// Intervals from `first` on are read by `op` for the operation `into`.
  void read(int op, int first, std::int64_t offset, int into, Problems& problems) {
    const int rank = table_[op].rank;
    const std::int64_t count = intervals_.end(into) - intervals_.first(into);
    if (!work_.spend(kStepsOfMove * (1 + count))) return;
    underWay_ += count;
    if (!roomUnderWay_.fits(underWay_ * kBytesUnderWay)) return;
    std::vector<Held>& arriving = arrived_[into];
    for (int i = intervals_.first(into); i < intervals_.end(into); ++i) {
      const int from = first + i - intervals_.first(into);
      Held held = held_[slot(rank, from)];
      checkLayer(op, from, i, /*writes=*/false, problems);
      if (held.sum < 0)
        complain(op, i, "moves elements that it does not have, to [{}, +{})", problems);
      held.moved += table_[into].piece.offset - offset;
      arriving.push_back(held);
    }
  }

  /// Where layers are not said all lanes are in one.
  void checkLayer(int op, int interval, int named, bool writes, Problems& problems) {
    const std::size_t place = slot(table_[op].rank, interval);
    const std::size_t layer = layerOf_[at(table_[op].lane)];
    const int writer = writer_[place];
    if (writer >= 0 && layerOf_[at(table_[writer].lane)] > layer) {
      complain(op, named, "touches elements [{}, +{}), which a higher layer has written", problems);
    }
    if (!writes) {
      reader_[place] = std::max(reader_[place], layer);
    } else if (reader_[place] > layer) {
      complain(op, named, "writes elements [{}, +{}), which a higher layer has read", problems);
    }
  }

  void complain(int op, int interval, std::string_view text, Problems& problems) const {
    const Piece where = intervals_.piece(interval);
    problems.add([&] {
      return table_.problemAt(op, fmt::format(fmt::runtime(text), where.offset, where.count));
    });
  }

  std::string faultOf(int rank, int interval) const {
    const Held held = held_[slot(rank, interval)];
    const std::int64_t offset = intervals_.piece(interval).offset;
    const Expected expected = target_.endsWith(rank, offset);
    if (expected.what == Expected::kAnything) return "";
    if (held.sum < 0) return "hold nothing";
    if (expected.what == Expected::kDataOf) {
      if (held.sum != sums_.leaf(expected.rank)) {
        return fmt::format("are not the data of rank {}", expected.rank);
      }
      return held.moved == expected.moved ? "" : "are other elements than they should be";
    }
    if (held.moved != 0) return "are sums of elements of other places";
    if (const int twice = sums_.duplicated(held.sum); twice >= 0) {
      return fmt::format("contain the contribution of rank {} more than once", twice);
    }
    if (const int absent = sums_.missing(held.sum); absent >= 0) {
      return fmt::format("lack the contribution of rank {}", absent);
    }
    const Held first = held_[slot(0, interval)];
    if (target_.endsWith(0, offset).what == Expected::kSum && first.sum >= 0 &&
        held.sum != first.sum && sums_.complete(first.sum)) {
      return "are summed in another order than on rank 0: results are not bit-identical";
    }
    return "";
  }

  void report(int rank, int first, int end, const std::string& fault, Problems& problems) const {
    const Piece last = intervals_.piece(end - 1);
    std::string text = fmt::format("in the end elements [{}, {}) {}",
                                   intervals_.piece(first).offset, last.offset + last.count, fault);
    const int writer = writer_[slot(rank, first)];
    if (writer < 0) {
      problems.add([&] {
        return Problem{rank, -1, -1, std::move(text) + "; nothing was ever written to them"};
      });
    } else {
      problems.add(
          [&] { return table_.problemAt(writer, std::move(text) + "; last written here"); });
    }
  }

  const OpTable& table_;
  const Intervals& intervals_;
  const Target& target_;
  ProofWork& work_;
  ProofTable roomOfSums_;
  ProofTable roomUnderWay_;
  SymbolicSums sums_;
  std::vector<Held> held_;
  std::vector<int> writer_;                             ///< last operation that wrote, or -1
  std::vector<std::size_t> reader_;                     ///< highest layer that has read
  std::vector<std::size_t> layerOf_;                    ///< by lane
  std::unordered_map<int, std::vector<Held>> arrived_;  ///< receive -> what it brings
  std::int64_t underWay_ = 0;                           ///< of all of these
};

/// Whether they are empty, or each lane once.
bool areLayers(std::span<const int> layers, int lanes) {
  std::vector<int> sorted(layers.begin(), layers.end());
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) return false;
  }
  return sorted.empty() || sorted.size() == at(lanes);
}

/// Names what the first stuck operation of every lane is waiting for.
void reportStuck(const OpTable& table, const Replay& replay, std::string_view when,
                 Problems& problems) {
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
      problems.add([&] {
        return table.problemAt(
            op, fmt::format("deadlock{}: {} waits for {}", when, kindName(entry.kind), why));
      });
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

/// What has taken more than it may.
Status tooMuch(std::string_view what) {
  return errorf(Code::kUnsupported,
                "its proof takes too much: {}. Write it with fewer operations, with fewer chunks, "
                "or with data that keep their places",
                what);
}
Status tooMuch(const ProofWork& work, std::string_view stage) {
  if (work.tooLarge() > 0) {
    return tooMuch(fmt::format("a table of {} bytes, and at most {}, in {}", work.tooLarge(),
                               work.mostBytes(), stage));
  }
  if (work.tooLargeTogether() > 0) {
    return tooMuch(fmt::format("tables of {} bytes together, and at most {}, in {}",
                               work.tooLargeTogether(), work.mostBytesTogether(), stage));
  }
  return tooMuch(fmt::format("more than {} million steps, in {}", work.most() / 1'000'000, stage));
}

Status verifyTable(const OpTable& table, const Schedule& schedule, const VerifyOptions& options,
                   ProofWork& work, Problems& problems) {
  if (!areLayers(schedule.layers(), table.lanes())) {
    problems.add([&] { return Problem{-1, -1, -1, "its layers are not each of its lanes once"}; });
    return okStatus();
  }
  const Target target(schedule.collective(), schedule.root(), table.ranks(), table.elements());
  ProofTable roomOfCuts(work);
  const Intervals intervals(table, target.cuts(), work, roomOfCuts);
  if (work.isOver()) return tooMuch(work, "the cutting of its data into pieces");
  const std::int64_t most = work.mostBytes() / kBytesOfHeld;
  const auto held = std::int64_t{table.ranks()} * intervals.count();
  if (held > most) {
    return tooMuch(
        fmt::format("{} pieces of data on {} ranks, and {} of all ranks can be told "
                    "apart",
                    intervals.count(), table.ranks(), most));
  }
  constexpr std::string_view kFollowing = "the following of its data";
  ProofTable roomOfHeld(work);
  if (!roomOfHeld.fits(held * kBytesOfHeld)) return tooMuch(work, kFollowing);
  Holdings holdings(table, intervals, target, schedule.layers(), work);
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
        holdings.write(op, problems);
      });
  if (work.isOver()) return tooMuch(work, kFollowing);
  if (!finished) {
    reportStuck(table, replay, "", problems);
    return okStatus();
  }
  if (options.window > 0) {
    Replay narrow(table, options.window);
    const auto ignore = [](int) {};
    if (!run(narrow, ignore, ignore, ignore)) {
      reportStuck(table, narrow, fmt::format(" with a window of {}", options.window), problems);
    }
  }
  findRaces(table, intervals, order, work, problems);
  if (work.isOver()) return tooMuch(work, "the search for operations that meet");
  holdings.checkResults(problems);
  return work.isOver() ? tooMuch(work, "the look at its results") : okStatus();
}

}  // namespace

Result<VerifyReport> verifySchedule(const Schedule& schedule, const VerifyOptions& options) {
  VerifyReport report;
  report.ranks = schedule.ranks();
  Problems problems(at(options.maxProblems));
  ASSIGN_OR_RETURN(const OpTable table, OpTable::load(schedule, problems));
  report.operations = table.size();
  ProofWork work(options.mostWork, options.mostBytes, options.mostBytesTogether);
  if (problems.empty()) {
    RETURN_IF_ERROR(verifyTable(table, schedule, options, work, problems));
  }
  report.work = work.spent();
  report.problems = problems.kept();
  report.moreProblems = problems.count() - std::ssize(report.problems);
  report.countedAll = !problems.areEnough();
  return report;
}

}  // namespace faultline::schedule

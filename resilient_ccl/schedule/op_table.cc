#include "resilient_ccl/schedule/op_table.h"

#include <tuple>

namespace faultline::schedule {

std::string_view kindName(OpKind kind) {
  switch (kind) {
    case OpKind::kSend:
      return "send";
    case OpKind::kRecv:
      return "recv";
    case OpKind::kRecvReduce:
      return "recvReduce";
    case OpKind::kCopy:
      return "copy";
  }
  return "unknown";
}

Problem OpTable::problemAt(int op, std::string text) const {
  const Entry& entry = (*this)[op];
  return {entry.rank, entry.lane, positionOf(op), std::move(text)};
}

Result<OpTable> OpTable::load(const Schedule& schedule, Problems& problems) {
  OpTable table;
  table.ranks_ = schedule.ranks();
  table.lanes_ = schedule.lanes();
  table.elements_ = schedule.elements();
  std::int64_t total = 0;
  for (int rank = 0; rank < table.ranks_; ++rank) {
    for (int lane = 0; lane < table.lanes_; ++lane) {
      table.first_.push_back(static_cast<int>(total));
      total += schedule.opCount(rank, lane);
      if (total > kMaxOps) {
        return errorf(Code::kUnsupported,
                      "the schedule has more than {} operations; use fewer ranks or segments",
                      kMaxOps);
      }
    }
  }
  table.first_.push_back(static_cast<int>(total));
  table.entries_.resize(static_cast<std::size_t>(total));
  for (int rank = 0; rank < table.ranks_; ++rank) {
    for (int lane = 0; lane < table.lanes_; ++lane) {
      const int first = table.firstOf(rank * table.lanes_ + lane);
      const int end = table.firstOf(rank * table.lanes_ + lane + 1);
      for (int index = first; index < end; ++index) {
        const Op op = schedule.op(rank, lane, index - first);
        Entry& entry = table.entries_[static_cast<std::size_t>(index)];
        entry.kind = op.kind;
        entry.rank = rank;
        entry.lane = lane;
        entry.peer = op.peer;
        entry.piece = op.piece;
        entry.source = op.source;
        table.resolveWaits(op, index, problems);
        if (op.after >= 0) table.resolveAfter(op, index, problems);
        table.checkPiece(index, problems);
      }
    }
  }
  // Waits that point across lanes can only be judged when all operations are loaded.
  for (int index = 0; index < table.size(); ++index) {
    const Entry& entry = table[index];
    for (int i = 0; i < entry.waitCount; ++i) {
      const Piece waited = table[entry.waitOp[i]].piece;
      if (entry.waitElements[i] < 0 || entry.waitElements[i] > waited.count) {
        problems.add([&] {
          return table.problemAt(index,
                                 fmt::format("waits for {} elements of an operation that has {}",
                                             entry.waitElements[i], waited.count));
        });
      }
    }
  }
  table.matchMessages(problems);
  return table;
}

void OpTable::resolveWaits(const Op& op, int index, Problems& problems) {
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  if (op.waitCount < 0 || op.waitCount > Op::kMaxWaits) {
    problems.add([&] {
      return problemAt(index, fmt::format("has {} waits; at most {}", op.waitCount, Op::kMaxWaits));
    });
    return;
  }
  for (int i = 0; i < op.waitCount; ++i) {
    const Wait& wait = op.waits[i];
    const bool laneExists = wait.lane >= 0 && wait.lane < lanes_;
    const int chain = entry.rank * lanes_ + (laneExists ? wait.lane : 0);
    if (!laneExists || wait.op < 0 || wait.op >= firstOf(chain + 1) - firstOf(chain)) {
      problems.add([&] {
        return problemAt(index, fmt::format("waits for lane {} op {}, which does not exist",
                                            wait.lane, wait.op));
      });
      continue;
    }
    const int target = firstOf(chain) + static_cast<int>(wait.op);
    if (wait.lane == entry.lane && target >= index) {
      problems.add([&] {
        return problemAt(
            index, fmt::format("waits for op {}, which is not before it in its lane", wait.op));
      });
      continue;
    }
    entry.waitOp[entry.waitCount] = target;
    entry.waitElements[entry.waitCount] = wait.count;
    ++entry.waitCount;
  }
}

void OpTable::resolveAfter(const Op& op, int index, Problems& problems) {
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  const int first = firstOf(chainOf(index));
  if (op.kind != OpKind::kRecvReduce || op.after >= index - first ||
      (*this)[first + static_cast<int>(op.after)].kind != OpKind::kRecvReduce) {
    problems.add([&] {
      return problemAt(
          index,
          fmt::format("is to be reduced after op {}, but both must be reductions, and that one "
                      "before it in its lane",
                      op.after));
    });
    return;
  }
  entry.after = first + static_cast<int>(op.after);
}

void OpTable::checkPiece(int index, Problems& problems) const {
  const Entry& entry = (*this)[index];
  const auto inside = [&](const Piece& piece) {
    return piece.offset >= 0 && piece.count >= 0 && piece.offset <= elements_ - piece.count;
  };
  const auto complain = [&](std::string_view what, const Piece& piece) {
    problems.add([&] {
      return problemAt(index, fmt::format("{} [{}, +{}) is not inside the buffer of {} elements",
                                          what, piece.offset, piece.count, elements_));
    });
  };
  if (!inside(entry.piece)) complain("piece", entry.piece);
  if (entry.kind == OpKind::kCopy) {
    if (!inside(entry.source)) complain("source", entry.source);
    if (entry.source.count != entry.piece.count) {
      problems.add([&] {
        return problemAt(index, fmt::format("copies {} elements into {}", entry.source.count,
                                            entry.piece.count));
      });
    }
  } else if (entry.peer < 0 || entry.peer >= ranks_ || entry.peer == entry.rank) {
    problems.add(
        [&] { return problemAt(index, fmt::format("has rank {} as its peer", entry.peer)); });
  }
}

std::vector<int> OpTable::sortedBy(const std::vector<int>& ops, bool byPeer) const {
  const auto key = [&](int op) {
    const Entry& entry = (*this)[op];
    return static_cast<std::size_t>(byPeer ? entry.peer : entry.rank);
  };
  std::vector<int> next(static_cast<std::size_t>(ranks_) + 1, 0);
  for (const int op : ops) ++next[key(op) + 1];
  for (std::size_t rank = 1; rank < next.size(); ++rank) next[rank] += next[rank - 1];
  std::vector<int> sorted(ops.size());
  for (const int op : ops) sorted[static_cast<std::size_t>(next[key(op)]++)] = op;
  return sorted;
}

void OpTable::matchMessages(Problems& problems) {
  std::vector<int> sends, receives;
  for (int index = 0; index < size(); ++index) {
    const Entry& entry = (*this)[index];
    if (entry.peer < 0 || entry.peer >= ranks_) continue;  // has been complained of
    if (entry.kind == OpKind::kSend) sends.push_back(index);
    if (isReceive(entry.kind)) receives.push_back(index);
  }
  // Operations are ordered by (rank, lane, position); stable sorting brings both ends of all
  // messages into one order, (receiver, sender, lane, position), in linear time.
  sends = sortedBy(sends, /*byPeer=*/true);
  receives = sortedBy(sortedBy(receives, /*byPeer=*/true), /*byPeer=*/false);
  const auto keyOfSend = [&](int op) {
    const Entry& entry = (*this)[op];
    return std::tuple(entry.peer, entry.rank, entry.lane);
  };
  const auto keyOfReceive = [&](int op) {
    const Entry& entry = (*this)[op];
    return std::tuple(entry.rank, entry.peer, entry.lane);
  };
  std::size_t s = 0, r = 0;
  while (s < sends.size() || r < receives.size()) {
    const bool sendLeft = s < sends.size(), receiveLeft = r < receives.size();
    if (!receiveLeft || (sendLeft && keyOfSend(sends[s]) < keyOfReceive(receives[r]))) {
      problems.add([&] {
        return problemAt(sends[s], fmt::format("sends to rank {}, which has no receive for it",
                                               (*this)[sends[s]].peer));
      });
      ++s;
    } else if (!sendLeft || keyOfReceive(receives[r]) < keyOfSend(sends[s])) {
      problems.add([&] {
        return problemAt(receives[r], fmt::format("receives from rank {}, which has no send for it",
                                                  (*this)[receives[r]].peer));
      });
      ++r;
    } else {
      pair(sends[s++], receives[r++], problems);
    }
  }
}

void OpTable::pair(int send, int receive, Problems& problems) {
  entries_[static_cast<std::size_t>(send)].partner = receive;
  entries_[static_cast<std::size_t>(receive)].partner = send;
  const Piece sent = (*this)[send].piece;
  const Piece received = (*this)[receive].piece;
  if (sent.count != received.count) {
    problems.add([&] {
      return problemAt(
          receive, fmt::format("receives {} elements from rank {}, which sends {} (op {})",
                               received.count, (*this)[send].rank, sent.count, positionOf(send)));
    });
  }
}

}  // namespace faultline::schedule

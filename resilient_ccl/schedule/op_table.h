#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/schedule/problems.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// Every operation of every rank in one array, with waits and message partners resolved to indices
/// into it. The generic view that verification and costing work on; it needs about 100 bytes per
/// operation, so it is for schedules of up to kMaxOps operations.
class OpTable {
 public:
  /// About 1 GB of memory.
  static constexpr std::int64_t kMaxOps = std::int64_t{1} << 23;

  struct Entry {
    OpKind kind = OpKind::kSend;
    int rank = 0;
    int lane = 0;
    int peer = 0;
    Piece piece;
    Piece source;      ///< kCopy only
    int partner = -1;  ///< the other end of the message; -1 for kCopy and for unmatched ops
    int after = -1;    ///< the kRecvReduce that is reduced before; -1 for none
    int waitCount = 0;
    std::array<int, Op::kMaxWaits> waitOp{};
    std::array<std::int64_t, Op::kMaxWaits> waitElements{};
  };

  /// Loads a schedule. What cannot be resolved (a wait on nothing, an unmatched send, a piece
  /// outside the buffer, ...) is appended to `problems`; a table with problems must not be
  /// replayed. kUnsupported when the schedule has more than kMaxOps operations.
  static Result<OpTable> load(const Schedule& schedule, Problems& problems);

  int ranks() const { return ranks_; }
  int lanes() const { return lanes_; }
  std::int64_t elements() const { return elements_; }

  int size() const { return static_cast<int>(entries_.size()); }
  const Entry& operator[](int op) const { return entries_[static_cast<std::size_t>(op)]; }

  /// A chain is one lane of one rank; its operations are [firstOf(chain), firstOf(chain + 1)).
  int chains() const { return ranks_ * lanes_; }
  int chainOf(int op) const { return (*this)[op].rank * lanes_ + (*this)[op].lane; }
  int firstOf(int chain) const { return first_[static_cast<std::size_t>(chain)]; }
  /// Position of an operation in its lane, as the schedule counts.
  int positionOf(int op) const { return op - firstOf(chainOf(op)); }

  Problem problemAt(int op, std::string text) const;

 private:
  OpTable() = default;
  void resolveWaits(const Op& op, int index, Problems& problems);
  void resolveAfter(const Op& op, int index, Problems& problems);
  void checkPiece(int index, Problems& problems) const;
  void matchMessages(Problems& problems);
  /// The operations in the order of their peers (or ranks), otherwise in their order here.
  std::vector<int> sortedBy(const std::vector<int>& ops, bool byPeer) const;
  void pair(int send, int receive, Problems& problems);

  int ranks_ = 0;
  int lanes_ = 0;
  std::int64_t elements_ = 0;
  std::vector<int> first_;
  std::vector<Entry> entries_;
};

/// "send", "recv", "recvReduce", "copy".
std::string_view kindName(OpKind kind);

inline bool isReceive(OpKind kind) { return kind == OpKind::kRecv || kind == OpKind::kRecvReduce; }

}  // namespace faultline::schedule

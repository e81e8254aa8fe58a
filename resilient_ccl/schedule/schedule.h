#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "resilient_ccl/schedule/collective.h"

namespace faultline::schedule {

class StepView;

enum class OpKind : std::uint8_t {
  kSend,        ///< send the piece to `peer`
  kRecv,        ///< receive the piece from `peer`, overwriting it
  kRecvReduce,  ///< receive from `peer` and reduce into the piece: piece = piece (op) received
  kCopy,        ///< copy `source` to the piece inside the rank
};

/// "`count` elements of operation `op` of lane `lane` (same rank) have been done": a byte
/// watermark, so that an operation can follow one that is still running.
struct Wait {
  int lane = 0;
  std::int64_t op = 0;
  std::int64_t count = 0;
};

/// One operation of one rank. The i-th send of lane l from a to b matches the i-th receive of
/// lane l on b from a; both have the same count. A send or receive of no elements (buffers smaller
/// than the number of ranks) moves no message and is done at once, at both ends.
struct Op {
  static constexpr int kMaxWaits = 2;

  OpKind kind = OpKind::kSend;
  int peer = 0;
  Piece piece;
  Piece source;  ///< kCopy only
  int waitCount = 0;
  std::array<Wait, kMaxWaits> waits{};
  /// kRecvReduce only: an earlier kRecvReduce of the lane that is reduced before this one, -1 for
  /// none. Unlike a wait it holds up the reduction and not the message: what arrives early is kept.
  /// So contributions can be on their way at the same time and are still added in one order.
  std::int64_t after = -1;
};

/// A collective as data: for every rank a few lanes, each an ordered list of operations. Lanes run
/// concurrently; the operations of a lane are *issued* in order, each as soon as its waits hold,
/// and complete on their own. Operations are computed on demand from closed forms, so that a
/// schedule for thousands of ranks costs no memory. Immutable, safe to read from any thread.
class Schedule {
 public:
  virtual ~Schedule() = default;

  virtual std::string_view algorithm() const = 0;
  virtual Collective collective() const { return Collective::kAllReduce; }
  /// Of a Broadcast or Reduce.
  virtual int root() const { return 0; }
  virtual int ranks() const = 0;
  virtual int lanes() const = 0;
  /// Elements per rank in the buffer; of data: `dataElements`.
  virtual std::int64_t elements() const = 0;
  virtual std::int64_t opCount(int rank, int lane) const = 0;
  /// The index-th operation of a lane, 0 <= index < opCount(rank, lane).
  virtual Op op(int rank, int lane, std::int64_t index) const = 0;
  /// Each lane once, as layers, lowest first, where they are: a rank's operation touches nothing
  /// that a higher layer has written, and writes nothing that one has read. So what it finds
  /// unwritten is known without playing the schedule (`comm::Program`). Empty: not said. The
  /// verifier checks it.
  virtual std::span<const int> layers() const { return {}; }
  /// The same as macro steps, where it consists of them; else null. Lives as long as the schedule.
  virtual const StepView* stepView() const { return nullptr; }
};

}  // namespace faultline::schedule

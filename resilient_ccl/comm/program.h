#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::comm {

/// One rank's part of a schedule, made ready to be executed many times: its operations in arrays,
/// and what follows from them for pieces that travel in slices. Pure, immutable, safe to read from
/// any thread.
///
/// A schedule orders whole operations. Where its lanes share no elements, all that can go wrong
/// between operations of a lane is that they touch the same elements, so their order is kept for
/// each slice instead: a send follows a reduction that is still running. Where lanes share
/// elements, operations wait as the schedule says.
class Program {
 public:
  struct Step {
    schedule::OpKind kind = schedule::OpKind::kSend;
    int peer = 0;
    schedule::Piece piece;
    schedule::Piece source;  ///< kCopy only
    int waitCount = 0;       ///< of waits for whole operations, which are left
    std::array<schedule::Wait, schedule::Op::kMaxWaits> waits{};
    /// Earlier steps of the lane that touch the same elements: first of them, and how many.
    int firstHazard = 0;
    int hazardCount = 0;
    /// Out of place, and `readsSource()`: its elements have not been written before.
    bool readsSource = false;
    /// kRecvReduce: which of the chains of reductions into one piece it belongs to; -1: none.
    int chain = -1;
    bool chainBegins = false;
    bool chainEnds = false;
    /// kRecvReduce: afterwards the piece holds the contributions of all ranks.
    bool completes = false;
  };
  /// Slice s of a step must not begin before slice s of `step` (`sameSlices`), or all of it.
  struct Hazard {
    std::int64_t step = 0;
    bool sameSlices = false;
  };
  struct Lane {
    std::vector<Step> steps;
    std::vector<std::int64_t> sends;     ///< indices of the sends, in order
    std::vector<std::int64_t> receives;  ///< likewise of both kinds of receives
    std::vector<Hazard> hazards;
    int sendPeers = 0;     ///< different ranks that are sent to
    int receivePeers = 0;  ///< likewise received from
  };

  /// `completes`: as findCompletions has found it; needed for averages only.
  static std::shared_ptr<const Program> compile(
      const schedule::Schedule& schedule, int rank,
      const std::vector<std::vector<bool>>& completes = {});

  int ranks() const { return ranks_; }
  std::int64_t elements() const { return elements_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  int chains() const { return chains_; }
  /// Whether a step waits for one of another lane.
  bool lanesWait() const { return lanesWait_; }
  /// Out of place: steps read what has not been written from the source; only `untouched` must be
  /// copied. Otherwise everything must be, before the start.
  bool readsSource() const { return readsSource_; }
  std::span<const schedule::Piece> untouched() const { return untouched_; }

 private:
  class Compiler;
  Program() = default;

  int ranks_ = 1;
  std::int64_t elements_ = 0;
  std::vector<Lane> lanes_;
  int chains_ = 0;
  bool lanesWait_ = false;
  bool readsSource_ = true;
  std::vector<schedule::Piece> untouched_;
};

}  // namespace faultline::comm

#pragma once

#include <vector>

#include "resilient_ccl/schedule/op_table.h"

namespace faultline::schedule {

/// Walks through a schedule in the order its rules allow: a lane issues its operations in order,
/// each as soon as its waits hold; a message can move when both its ends are issued; its end
/// completes both. Time is the caller's affair: it decides when a movable transfer completes. The
/// one engine under the verifier and the cost models.
///
/// Watermarks are taken as "all of it": a transfer completes as a whole. A message whose reduction
/// has to come after another one completes its send, and its receive when that one is done.
class Replay {
 public:
  /// `window` > 0 limits the unfinished sends of a lane, and likewise its receives, as an executor
  /// with few slots would; 0 = unlimited. The table must be free of problems and outlive this.
  Replay(const OpTable& table, int window);

  /// Transfers that became movable since the last call: the index of the send, or of the copy.
  std::vector<int> takeMovable();
  /// Operations issued since the last call, in order.
  std::vector<int> takeIssued();

  /// The transfer (send or copy) has been done; its waiters are issued.
  void complete(int op);
  /// Receives that were done since the last call, in order.
  std::vector<int> takeReceived();

  bool finished() const { return completed_ == table_.size(); }
  bool isIssued(int op) const { return state_[static_cast<std::size_t>(op)] != State::kWaiting; }
  /// Arrived, and waiting for the reduction that has to come first.
  bool isHeld(int op) const { return state_[static_cast<std::size_t>(op)] == State::kHeld; }
  bool isDone(int op) const { return state_[static_cast<std::size_t>(op)] == State::kDone; }
  /// The first operation of a chain that is not issued; the chain's end when all are.
  int cursor(int chain) const { return chains_[static_cast<std::size_t>(chain)].cursor; }

 private:
  enum class State : std::uint8_t { kWaiting, kIssued, kHeld, kDone };
  struct Chain {
    int cursor = 0;
    int openSends = 0;
    int openReceives = 0;
    int nextBlocked = -1;  ///< next chain that is blocked on the same operation
  };

  void advance(int chain);
  void issue(int op);
  void finish(int op);
  void finishReceive(int op);
  int* openCounter(int op);
  /// A wait of `op` that does not hold yet, as the operation waited for; -1 when all hold.
  int unmetWait(int op) const;

  const OpTable& table_;
  int window_;
  int completed_ = 0;
  std::vector<State> state_;
  std::vector<Chain> chains_;
  std::vector<int> blockedHead_;  ///< per operation: first chain blocked on it, or -1
  std::vector<int> heldHead_;     ///< per operation: first arrived receive held for it, or -1
  std::vector<int> heldNext_;     ///< per held receive: the next one held for the same operation
  std::vector<int> movable_;
  std::vector<int> received_;
  std::vector<int> issued_;
};

}  // namespace faultline::schedule

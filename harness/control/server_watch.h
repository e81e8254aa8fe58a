#pragma once

#include <map>
#include <span>

#include "base/clock.h"

namespace faultline::run {

/// Since when a server may hang, by what its first ranks say: one of them has said nothing, because
/// it waits for something, and the last of them has done no step. With prefill and decode apart,
/// keys and values wait until the batch of decode has room, and nothing hangs while decode goes on;
/// that prefill goes on shows nothing, as it does not wait for what it sends. Pure.
class ServerWatch {
 public:
  /// A new attempt, of which these ranks tell.
  void started(std::span<const int> firstRanks, TimePoint now);
  /// The rank does not wait for anybody. It says so before it computes for `computes`, too.
  void alive(int rank, TimePoint now, Duration computes = Duration::zero());
  void stepDone(int rank, TimePoint now);

  TimePoint quietSince() const;

 private:
  bool isLast(int rank) const { return !signs_.empty() && rank == signs_.rbegin()->first; }

  std::map<int, TimePoint> signs_;  // by first rank
  TimePoint worked_{};              // the last one, or will have until then
};

}  // namespace faultline::run

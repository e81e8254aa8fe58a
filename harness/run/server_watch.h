#pragma once

#include <map>
#include <span>

#include "base/clock.h"

namespace faultline::run {

/// Since when a server may hang, by what its first ranks say: one of them has said nothing, because
/// it waits for something, and no rank has done a step. A rank that waits does not hang while
/// another one works: with prefill and decode apart, keys and values wait until the batch of decode
/// has room. Pure.
class ServerWatch {
 public:
  /// A new attempt, of which these ranks tell.
  void started(std::span<const int> firstRanks, TimePoint now);
  /// The rank does not wait for anybody. It says so before it computes for `computes`, too.
  void alive(int rank, TimePoint now, Duration computes = Duration::zero());
  void stepDone(TimePoint now);

  TimePoint quietSince() const;

 private:
  std::map<int, TimePoint> signs_;  // by first rank
  TimePoint worked_{};              // a rank, or will have until then
};

}  // namespace faultline::run

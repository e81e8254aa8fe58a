#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "harness/control/server_watch.h"
#include "harness/record/hang_proof.h"
#include "harness/record/iteration_table.h"
#include "harness/scenario/scenario.h"

namespace faultline::run {

/// The watchdog of a library without failover, as `fail_stop` has it: a collective has been under
/// way for so long and nothing moves. Moments and bytes in, no clock. Also keeps what proves that a
/// job hangs, and from which fault.
class Watchdog {
 public:
  explicit Watchdog(const scenario::Scenario& scenario) : scenario_(scenario) {}

  /// An attempt began on all ranks.
  void started(TimePoint when);
  /// A sign that training goes on.
  void marked(TimePoint when) { lastMark_ = when; }
  /// Of the first ranks of a server (ServerWatch).
  void alive(int rank, TimePoint when, Duration computes) { server_.alive(rank, when, computes); }
  void stepDone(int rank, TimePoint when) { server_.stepDone(rank, when); }

  /// Of the faults and of the payload that was delivered since the start of the run.
  HangProof& proof() { return proof_; }

  /// The hang, when nothing has moved for `patience`: `delivered` as of `time`, `open` the
  /// iteration that is under way. Nothing before the first fault of the attempt: slow, but nothing
  /// was broken.
  std::optional<HangProof::Hang> check(TimePoint time, Duration patience, std::uint64_t delivered,
                                       const std::optional<IterationTable::Row>& open);

 private:
  const scenario::Scenario& scenario_;
  TimePoint lastMark_{};  // the newest sign of training
  ServerWatch server_;
  std::uint64_t lastDelivered_ = 0;  // payload, looked at from the first fault on
  TimePoint lastGrowth_{};           // of it
  HangProof proof_;
};

}  // namespace faultline::run

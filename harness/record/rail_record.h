#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "harness/record/damage.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"
#include "wire/rank.h"

namespace faultline::run {

/// What the ranks of a run tell of their rails: failovers, failbacks, slow rails, and what they
/// recorded (`telemetry: on`). Messages in, entries of a result out: no clock, no machine.
class RailRecord {
 public:
  /// `cluster` must live as long as this.
  explicit RailRecord(const scenario::Cluster& cluster) : cluster_(cluster) {}

  /// Of a message of `rank`; `t0`: start of the run, which traces are told after.
  void told(int rank, const wire::Network& network, TimePoint t0);

  /// All of it into the run's entry, each failover with its failback and with what caused it. `t0`:
  /// start of the run; `changes`: what its faults did. To be called once, last.
  void finish(TimePoint t0, const FaultChanges& changes, reports::Run& run);

 private:
  /// As a rank told it; nullopt: it never came to that.
  struct Failover {
    reports::Failover entry;  // what needs no clock
    bool idle = false;        // the connection carried nothing
    double stallMs = 0;       // of a receive that had begun
    std::optional<TimePoint> detected, fenced, redelivered;
  };
  struct Failback {
    reports::Failback entry;
    TimePoint at;
  };
  struct Degradation {
    reports::Degradation entry;
    TimePoint at;
    std::optional<TimePoint> until;
  };

  void addFailover(int rank, const wire::Failover& told);
  void addDegradation(int rank, const wire::Degradation& change);
  void addTrace(int rank, const wire::Trace& trace, TimePoint t0);
  reports::Failover explained(const Failover& failover, TimePoint t0,
                              const FaultChanges& changes) const;

  const scenario::Cluster& cluster_;
  std::vector<Failover> failovers_;
  std::vector<Failback> failbacks_;
  std::vector<Degradation> degradations_;
  std::map<int, reports::Telemetry> telemetry_;  // by rank
};

}  // namespace faultline::run

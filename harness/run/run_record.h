#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/run/fault_control.h"
#include "harness/run/plan.h"
#include "harness/run/sampler.h"
#include "harness/run/timeline.h"
#include "reports/result.h"

namespace faultline::run {

/// Collects what happens in one run and makes the result's entry of it.
///
/// Throughput is useful iterations / timed seconds. Timed are the iterations (from the first rank's
/// begin to the last rank's end, without data checks), writing checkpoints, and what a restart
/// costs: the iteration that was cut off, waiting for the repair, loading, and redone iterations.
class RunRecord {
 public:
  RunRecord(const scenario::Scenario& scenario, const PlannedRun& planned);

  void started(TimePoint t0) { t0_ = t0; }
  /// True at the first rank's mark.
  bool iterationBegan(const nlohmann::json& message);
  void iterationEnded(int rank, const nlohmann::json& message);
  /// Counts checked and wrong elements.
  void checked(const nlohmann::json& message);
  /// A rank's last words, or its error: failovers, failbacks, counters.
  void rankDone(int rank, const nlohmann::json& message, const FaultControl* faults);

  // A fail-stop restart, in this order.
  void hung(TimePoint when, TimePoint fault, std::optional<std::uint64_t> payloadWhileHung);
  void crashed(TimePoint when, const std::string& message);
  void cutOff(TimePoint fault);
  void repaired(TimePoint when);
  void reloaded(TimePoint when);

  void failed(reports::RunStatus status, const std::string& message);

  const IterationTable& table() const { return table_; }
  reports::Run finish(const FaultControl* faults, const Sampler& sampler);

 private:
  double sinceStart(TimePoint when) const { return toMilliseconds(when - t0_); }
  reports::Failover failoverOf(int rank, const nlohmann::json& json,
                               const FaultControl* faults) const;

  const scenario::Scenario& scenario_;
  int ranks_;
  bool faulted_;
  TimePoint t0_{};
  IterationTable table_;
  reports::Run run_;
  std::map<std::pair<int, int>, std::string> digests_;  // by iteration and rank
  struct OpenRestart {
    TimePoint cut{}, killed{}, repaired{};
    std::optional<TimePoint> iterationBegan;
  };
  std::optional<OpenRestart> restart_;
  Duration restartTime_{};  // everything of restarts that is not in iterations
  std::string invalid_;
};

}  // namespace faultline::run

#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "harness/record/call_table.h"
#include "harness/record/damage.h"
#include "harness/record/exposed_times.h"
#include "harness/record/iteration_table.h"
#include "harness/record/observed.h"
#include "harness/record/plan_record.h"
#include "harness/record/rail_record.h"
#include "harness/record/recorded_run.h"
#include "harness/record/run_events.h"
#include "harness/record/run_order.h"
#include "harness/record/serving_record.h"
#include "harness/record/shrinking_table.h"
#include "reports/result.h"

namespace faultline::run {

/// What was noted of a run of ranks: events in, in their order, a reports::Run out. No clock, no
/// machine. What caused what is found at the end, when all that happened is known.
///
/// Throughput is useful iterations / timed seconds. Timed are the iterations (from the first rank's
/// begin to the last rank's end, without data checks), writing checkpoints, and what a restart
/// costs: the iteration that was cut off, waiting for the repair, loading, and redone iterations.
/// An iteration that was done by fewer ranks (`shrunk`) is as much less useful. A run that did not
/// come to its end has no throughput.
class RunRecord {
 public:
  RunRecord(const scenario::Scenario& scenario, const PlannedRun& planned);

  /// What was noted next.
  void add(const RunEvent& event);
  /// The same of event::Heard.
  void heard(int rank, TimePoint at, const wire::FromRank& message);

  void started(TimePoint t0) { t0_ = t0; }
  void iterationBegan(int rank, const wire::Begin& message);
  void iterationEnded(int rank, const wire::End& message);
  /// What a rank tells of the network, in any message.
  void events(int rank, const wire::Network& network);

  /// The rank has given the job up.
  void error(int rank, TimePoint heard, const std::string& message) {
    run_.errors.push_back({rank, sinceStart(heard), message});
  }

  // A fail-stop restart, in this order: why, cut off, repaired, reloaded. An attempt that dies
  // while it is loading is cut off again before it is reloaded, and belongs to the same restart.
  void hung(TimePoint when, const HangProof::Hang& hang);
  void crashed(const std::string& message);
  /// All ranks were killed at `when`, because of the fault at `fault`.
  void cutOff(TimePoint when, TimePoint fault);
  void repaired(TimePoint when);
  void reloaded(TimePoint when);

  /// A rank goes on with those that are left, of a job that a fault has struck at `fault`.
  void shrunk(int rank, const wire::Shrunk& message, std::optional<TimePoint> fault);
  /// A rank has left the job for good, as a port of its node was down.
  void excluded(int rank, const wire::Excluded& message);

  /// The run ends at `when`, before its last iteration.
  void failed(TimePoint when, reports::RunStatus status, const std::string& message);

  TimePoint start() const { return t0_; }
  /// What is known by now: who is left may be heard of by none, some or all ranks.
  const IterationTable& table() const { return table_.live(); }
  /// Of a workload with requests.
  std::optional<workload::ServerConfig> whatIsLeftToServe() const {
    return serving_ ? std::optional(serving_->whatIsLeft()) : std::nullopt;
  }

  /// The result's entry. To be called once, last.
  RecordedRun finish(Observed observed);

 private:
  double sinceStart(TimePoint when) const { return toMilliseconds(when - t0_); }
  std::string_view restartWords() const;
  reports::Iteration entryOf(const IterationTable::Row& row, TimePoint end) const;
  /// Whoever was heard of before, or after: what was told of ranks that are left is all there.
  void settleShrinks();
  void countLostWork();
  void countInterrupted();
  void countStall(Duration stall);
  void countLastStall(TimePoint end, std::span<const TimePoint> damages);
  void countPausesWithoutEnd();
  void checkPlans();
  /// Of a workload's data.
  void checked(std::int64_t checked, std::int64_t wrong);
  void keepResources(int rank, const std::optional<wire::Resources>& told);
  void keepCounters();
  void sortTold();

  const scenario::Scenario& scenario_;
  std::optional<TimePoint> endedEarly_;
  TimePoint t0_{};
  ShrinkingTable table_;
  CallTable calls_;
  ExposedTimes exposed_;
  PlanRecord plans_;
  RailRecord rails_;
  std::optional<ServingRecord> serving_;  // of a workload with requests
  reports::Run run_;
  std::vector<std::pair<int, reports::PortTest>> portTests_;     // with the rank that told it
  std::map<std::pair<int, int>, std::string> digests_;           // by iteration and rank
  std::map<int, std::map<std::string, std::int64_t>> counters_;  // by rank, of this attempt
  std::map<int, reports::ResourceUse> resources_;                // by rank
  std::vector<TimePoint> cuts_;                                  // of the restarts
  bool restarting_ = false;              // the last of them is not reloaded yet
  std::optional<TimePoint> repairedAt_;  // of the last of them
  Duration restartTime_{};               // everything of restarts that is not in iterations
  std::string invalid_;
};
}  // namespace faultline::run

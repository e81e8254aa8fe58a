#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/command/recovery.h"
#include "harness/record/observed.h"
#include "harness/record/recorded_run.h"
#include "harness/record/run_events.h"
#include "harness/record/run_order.h"
#include "reports/result.h"

namespace faultline::run {

/// What was noted of a run of a command: events in, in their order, a reports::Run out. No clock,
/// no machine.
///
/// The job is in the iteration that the furthest of its processes has told of; it is over when the
/// next one begins. When a process goes back, after a restart say, the job does: the iteration that
/// it was in is interrupted, and lasts from its first begin to the end of its last attempt.
class CommandRecord {
 public:
  CommandRecord(const scenario::Scenario& scenario, const PlannedRun& planned);

  /// What was noted next.
  void add(const RunEvent& event);

  void started(TimePoint t0) { t0_ = t0; }
  TimePoint start() const { return t0_; }

  /// A process has told which iteration it is in.
  void progressed(int rank, int iteration, TimePoint when);

  /// The iteration that the job is in.
  std::optional<int> open() const { return open_ ? std::optional(open_->index) : std::nullopt; }

  void ended(const event::ProgramEnded& end);
  int endedProcesses() const { return static_cast<int>(ends_.size()); }

  /// The run is over before all processes have ended well.
  void failed(reports::RunStatus status, const std::string& message);
  bool hasFailed() const { return run_.status != reports::RunStatus::kOk; }

  /// What they told, or why that is not known.
  void told(const event::Told& told);

  /// All that were left have a communicator again (nccl, modes abort_reinit and shrink); `fault`:
  /// the latest before it.
  void rebuilt(const command::Rebuildings::Rebuilding& made, std::optional<TimePoint> fault);
  /// The run proves nothing, unless it failed: the first reason counts.
  void invalid(const std::string& because);

  /// The result's entry. To be called once, last.
  RecordedRun finish(Observed observed);

 private:
  struct Iteration {
    int index;
    TimePoint begin;
    int attempts = 1;
    TimePoint end{};  // of one that is open: nothing yet
  };
  struct Rebuilt {
    command::Rebuildings::Rebuilding made;
    std::optional<TimePoint> fault;
    int iteration;  // that the job was in
  };

  double sinceStart(TimePoint when) const { return toMilliseconds(when - t0_); }
  reports::Iteration entryOf(const Iteration& iteration) const;
  void closeIteration(TimePoint when);
  void interruptIteration(TimePoint when);
  void addEnds();
  void addIterations();
  void addRebuilt();
  void addThroughput();

  const scenario::Scenario& scenario_;
  TimePoint t0_{};
  std::map<int, int> latest_;  // iteration, by rank
  std::optional<Iteration> open_;
  std::vector<Iteration> done_;
  std::map<int, Iteration> interrupted_;  // and not begun again, by index; until the job went back
  std::vector<event::ProgramEnded> ends_;
  std::vector<Rebuilt> rebuilt_;
  std::string invalid_;
  reports::Run run_;
};

}  // namespace faultline::run

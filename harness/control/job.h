#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/control/fault_control.h"
#include "harness/control/interrupt.h"
#include "harness/control/sampler.h"
#include "harness/control/session.h"
#include "harness/record/observed.h"
#include "harness/record/recorded_run.h"
#include "harness/record/run_events.h"
#include "harness/record/run_order.h"
#include "harness/scenario/scenario.h"
#include "harness/site/cluster.h"

namespace faultline::run {

/// What a run is made of. The session makes it, and takes it down again; its job works with it.
struct RunParts {
  const scenario::Scenario& scenario;
  const PlannedRun& planned;
  const SessionOptions& options;
  Interrupt& interrupt;
  // What refers to another is below it.
  std::unique_ptr<site::Cluster> cluster{};
  std::optional<Sampler> sampler{};
  std::optional<FaultControl> faults{};  ///< nullopt: the run has none
  std::unique_ptr<site::Processes> processes{};
};

/// What runs on the cluster, from the first process to the last, and what is noted of it: ranks of
/// ours (rank_job.h) or programs that are not (program_job.h). The session calls, in this order:
/// prepare, begin, (received, tick)* until it is over or interrupted, leave, conclude, finish.
class Job {
 public:
  explicit Job(RunParts& run) : run_(run) {}
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// What can be done, or found wrong, before the cluster is built. Its network is known.
  virtual Status prepare() = 0;
  /// Absolute path of the folder, made by then, that all nodes' programs read and write; empty:
  /// none.
  virtual std::string folder() const { return ""; }
  /// Starts the processes, on the cluster and with the faults of the run.
  virtual Status begin() = 0;
  virtual Status received(int process, const nlohmann::json& message) = 0;
  /// About every millisecond.
  virtual Status tick(TimePoint time) = 0;
  virtual bool isOver() const = 0;
  /// The user wants to go, perhaps before there was a cluster.
  virtual void interrupted() = 0;
  /// A part of the cluster is gone, and with it the job.
  virtual void lost(const std::string& what) = 0;
  /// Faults are taken back: what processes that have finished still need. The others are killed
  /// after it.
  virtual Status leave() { return okStatus(); }
  /// Nothing runs any more.
  virtual Status conclude() { return okStatus(); }
  virtual RecordedRun finish(Observed observed) = 0;

  // For who watches: what it does, and the iteration that began last (-1: none).
  virtual std::string_view phase() const = 0;
  virtual int iteration() const = 0;
  /// The run's time zero.
  virtual TimePoint start() const = 0;

  /// For the record and the transcript.
  void note(const RunEvent& event);

 protected:
  virtual void record(const RunEvent& event) = 0;
  RunParts& run_;
};

}  // namespace faultline::run

#include "harness/control/session.h"

#include <fmt/format.h>

#include "base/give_up.h"
#include "harness/control/job.h"
#include "harness/control/program_job.h"
#include "harness/control/rank_job.h"
#include "harness/record/transcript.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/workload_kind.h"
#include "harness/site/kind.h"

namespace faultline::run {
namespace {

// How often messages, counters and the timeline are looked at.
constexpr Duration kTick = 1ms;

site::ClusterSpec specOf(const scenario::Scenario& scenario, const std::string& folder) {
  site::ClusterSpec spec = scenario::specOf(scenario.cluster);
  spec.ranksPerNode = scenario::placementOf(scenario).perNode;
  spec.folder = folder;
  spec.run = scenario.name;
  return spec;
}

/// What has failed, and what failed on the way back. What could not be restored counts most.
Status both(const Status& first, const Status& second) {
  if (first.ok() || second.ok()) return first.ok() ? second : first;
  const bool later = second.code() == Code::kNotRestored;
  return Status(later ? second.code() : first.code(),
                fmt::format("{}; and then: {}", first.message(), second.message()));
}

class Session {
 public:
  Session(const scenario::Scenario& scenario, const PlannedRun& planned,
          const SessionOptions& options, Interrupt& interrupt)
      : run_{.scenario = scenario, .planned = planned, .options = options, .interrupt = interrupt},
        job_(scenario.workload.kind->runsRanks ? makeRankJob(run_) : makeProgramJob(run_)) {}

  Result<SessionResult> execute();

 private:
  Status setUp();
  /// What one carries.
  Status measureRail();
  Status loop();
  void interrupt() {
    interrupted_ = true;
    job_->interrupted();
  }
  /// Whatever there is by now: faults end, then processes. `well`: they are to be proved before.
  Status takeDown(bool well);
  Observed observed() const;
  /// Of the interrupt alone: a cluster that is kept has it, too.
  GiveUp giveUp() {
    return [&interrupt = run_.interrupt] { return interrupt.pending(); };
  }

  RunParts run_;
  std::unique_ptr<Job> job_;
  Goodput goodput_;
  bool interrupted_ = false;
};

Status Session::setUp() {
  const scenario::Scenario& scenario = run_.scenario;
  ASSIGN_OR_RETURN(run_.cluster, scenario.cluster.kind->make(specOf(scenario, job_->folder())));
  RETURN_IF_ERROR(job_->prepare());
  RETURN_IF_ERROR(run_.cluster->build(giveUp()));
  if (scenario.workload.kind->hasCells) RETURN_IF_ERROR(measureRail());
  run_.sampler.emplace(*run_.cluster);
  RETURN_IF_ERROR(run_.sampler->sample(now()));
  if (run_.planned.arm == reports::Arm::kFaulted) {
    ASSIGN_OR_RETURN(run_.faults, FaultControl::create(scenario, *run_.cluster, giveUp()));
    RETURN_IF_ERROR(
        run_.faults->step(now(), *run_.sampler));  // those that are there before the start
  }
  return job_->begin();
}

Status Session::measureRail() {
  OutputFolder& folder = run_.options.folder;
  const auto measure = [&]() -> Result<Goodput> {
    const Status made = folder.makeFolder(kGoodputFolder);
    if (!made.ok()) return Goodput{std::nullopt, made.message()};
    Result<Goodput> measured =
        measureGoodput(*run_.cluster, fmt::format("{}/{}", folder.absolutePath(), kGoodputFolder),
                       run_.options.logFd, giveUp());
    (void)folder.removeFolder(kGoodputFolder);  // what stays is the folder's own, and goes with it
    return measured;
  };
  ASSIGN_OR_RETURN(goodput_, run_.options.goodput == nullptr
                                 ? measure()
                                 : run_.options.goodput->of(run_.planned.block, measure));
  return okStatus();
}

Status Session::loop() {
  while (!job_->isOver()) {
    RETURN_IF_ERROR(run_.processes->poll(kTick, run_.interrupt.fd(),
                                         [this](int process, const nlohmann::json& message) {
                                           return job_->received(process, message);
                                         }));
    if (run_.interrupt.pending()) {
      interrupt();
      break;
    }
    const TimePoint time = now();
    RETURN_IF_ERROR(run_.sampler->keepUp(time));
    if (run_.options.load != nullptr) run_.options.load->keepUp(time);
    RETURN_IF_ERROR(job_->tick(time));
    if (run_.options.progress) run_.options.progress(job_->phase(), job_->iteration());
  }
  return run_.sampler->sample(now());
}

Status Session::takeDown(bool well) {
  Status status;
  if (run_.faults) status = well ? run_.faults->revertAll() : run_.faults->abandon();
  if (!run_.processes) return status;
  if (well) status = both(status, job_->leave());
  return both(status, run_.processes->kill());
}

Observed Session::observed() const {
  Observed observed;
  observed.goodput = goodput_;
  observed.rails = run_.sampler->totals();
  observed.railSeries = run_.sampler->series();
  if (!run_.faults) return observed;
  observed.faults = run_.faults->applied(job_->start());
  observed.evidence = run_.faults->evidence();
  observed.invalidBecause = run_.faults->invalidBecause();
  observed.changes = run_.faults->changes();
  return observed;
}

Result<SessionResult> Session::execute() {
  SessionResult result;
  const TimePoint started = now();
  job_->note(event::Started{started});  // until all processes are
  Status status = setUp();
  const bool begun = status.ok();
  if (!begun && status.code() == Code::kUnavailable) {  // a node is
    status = Status(status.code(), fmt::format("{}, {:.2f} s after the run began to be set up",
                                               status.message(), toSeconds(now() - started)));
  }
  if (begun) status = loop();
  // What is left of it is enough for a result that says so.
  bool lost = begun && !status.ok() && !run_.cluster->lost().empty();
  if (lost) {
    job_->lost(run_.cluster->lost());
    status = okStatus();
  }
  if (status.code() == Code::kAborted && run_.interrupt.pending()) {
    status = okStatus();  // what took long was told to stop
    interrupt();
  }
  const Status back = takeDown(status.ok() && !interrupted_ && !lost);
  // Also while the last faults were proved and taken back, which may take long.
  if (!interrupted_ && run_.interrupt.pending()) interrupt();
  // Ranks may have failed of it before it was known.
  if (begun && !lost && !interrupted_ && !run_.cluster->lost().empty()) {
    lost = true;
    job_->lost(run_.cluster->lost());
    status = okStatus();
  }
  if (status.ok() && (interrupted_ || lost) && back.code() != Code::kNotRestored) {
    result.trouble = back.message();
  } else {
    RETURN_IF_ERROR(both(status, back));
  }
  Observed seen;
  if (begun) {
    RETURN_IF_ERROR(job_->conclude());
    ASSIGN_OR_RETURN(result.cluster, run_.cluster->describe());
    seen = observed();
  }
  result.interrupted = interrupted_;
  if (run_.options.transcript != nullptr) run_.options.transcript->runEnded(seen);
  result.recorded = job_->finish(std::move(seen));
  if (run_.options.keepCluster && run_.cluster && !run_.cluster->waysToLookInside("").empty()) {
    run_.processes.reset();
    run_.faults.reset();
    run_.sampler.reset();
    result.keptCluster = std::move(run_.cluster);
  }
  return result;
}

}  // namespace

void Job::note(const RunEvent& event) {
  record(event);
  if (run_.options.transcript != nullptr) run_.options.transcript->add(event);
}

Result<SessionResult> runSession(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const SessionOptions& options, Interrupt& interrupt) {
  return Session(scenario, planned, options, interrupt).execute();
}

}  // namespace faultline::run

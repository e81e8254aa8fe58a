#include "harness/control/session.h"

#include <fmt/format.h>

#include "harness/control/job.h"
#include "harness/control/program_job.h"
#include "harness/control/rank_job.h"
#include "harness/record/transcript.h"
#include "harness/site/kind.h"

namespace faultline::run {
namespace {

// How often messages, counters and the timeline are looked at.
constexpr Duration kTick = 1ms;

site::ClusterSpec specOf(const scenario::Scenario& scenario, const std::string& folder) {
  site::ClusterSpec spec;
  spec.nodes = scenario.cluster.nodes;
  spec.ranksPerNode = scenario.workload.isForeign() ? scenario.workload.command.perNode
                                                    : scenario.cluster.ranksPerNode;
  spec.rails = scenario.cluster.rails;
  spec.railRate = scenario.cluster.railRate;
  spec.congestionControl = scenario.cluster.congestionControl;
  spec.folder = folder;
  return spec;
}

class Session {
 public:
  Session(const scenario::Scenario& scenario, const PlannedRun& planned,
          const SessionOptions& options, Interrupt& interrupt)
      : run_{.scenario = scenario, .planned = planned, .options = options, .interrupt = interrupt},
        job_(scenario.workload.isForeign() ? makeProgramJob(run_) : makeRankJob(run_)) {}

  Result<SessionResult> execute();

 private:
  Status setUp();
  /// What one carries.
  Status measureRail();
  Status loop();
  /// Whatever has happened: faults end, then processes.
  Status takeDown();
  Observed observed() const;

  RunParts run_;
  std::unique_ptr<Job> job_;
  Goodput goodput_;
  bool interrupted_ = false;
};

Status Session::setUp() {
  const scenario::Scenario& scenario = run_.scenario;
  ASSIGN_OR_RETURN(run_.cluster, scenario.cluster.kind->make(specOf(scenario, job_->folder())));
  RETURN_IF_ERROR(job_->prepare());
  RETURN_IF_ERROR(run_.cluster->build([this] { return run_.interrupt.pending(); }));
  if (scenario.workload.sweeps()) RETURN_IF_ERROR(measureRail());
  run_.sampler.emplace(*run_.cluster);
  RETURN_IF_ERROR(run_.sampler->sample(now()));
  if (run_.planned.arm == reports::Arm::kFaulted) {
    ASSIGN_OR_RETURN(run_.faults, FaultControl::create(scenario, *run_.cluster));
    RETURN_IF_ERROR(
        run_.faults->step(now(), *run_.sampler));  // those that are there before the start
  }
  return job_->begin();
}

Status Session::measureRail() {
  OutputFolder& folder = run_.options.folder;
  RETURN_IF_ERROR(folder.makeFolder(kGoodputFolder));
  const auto measure = [&] {
    return measureGoodput(*run_.cluster,
                          fmt::format("{}/{}", folder.absolutePath(), kGoodputFolder),
                          run_.options.logFd);
  };
  goodput_ = run_.options.goodput == nullptr
                 ? measure()
                 : run_.options.goodput->of(run_.planned.block, measure);
  return folder.removeFolder(kGoodputFolder);
}

Status Session::loop() {
  while (!job_->isOver()) {
    RETURN_IF_ERROR(run_.processes->poll(kTick, run_.interrupt.fd(),
                                         [this](int process, const nlohmann::json& message) {
                                           return job_->received(process, message);
                                         }));
    if (run_.interrupt.pending()) {
      interrupted_ = true;
      job_->interrupted();
      return okStatus();
    }
    const TimePoint time = now();
    RETURN_IF_ERROR(run_.sampler->keepUp(time));
    if (run_.options.load != nullptr) run_.options.load->keepUp(time);
    RETURN_IF_ERROR(job_->tick(time));
    if (run_.options.progress) run_.options.progress(job_->phase(), job_->iteration());
  }
  return run_.sampler->sample(now());
}

Status Session::takeDown() {
  Status first;
  const auto keep = [&](const Status& status) {
    if (first.ok()) first = status;
  };
  if (run_.faults) keep(interrupted_ ? run_.faults->abandon() : run_.faults->revertAll());
  keep(job_->leave());
  keep(run_.processes->kill());
  return first;
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
  job_->note(event::Started{now()});  // until all processes are
  const Status ready = setUp();
  Observed seen;
  if (ready.code() == Code::kAborted && run_.interrupt.pending()) {  // there is no cluster
    interrupted_ = true;
    job_->interrupted();
  } else {
    RETURN_IF_ERROR(ready);
    const Status looped = loop();
    const Status ended = takeDown();
    RETURN_IF_ERROR(looped);
    RETURN_IF_ERROR(ended);
    RETURN_IF_ERROR(job_->conclude());
    ASSIGN_OR_RETURN(result.cluster, run_.cluster->describe());
    seen = observed();
  }
  result.interrupted = interrupted_;
  if (run_.options.transcript != nullptr) run_.options.transcript->runEnded(seen);
  result.recorded = job_->finish(std::move(seen));
  if (run_.options.keepCluster) {
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

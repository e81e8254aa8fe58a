#include "harness/control/command_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "base/printable.h"
#include "harness/baseline/nccl_variables.h"
#include "harness/baseline/strategy_table.h"
#include "harness/control/fault_control.h"
#include "harness/control/observe.h"
#include "harness/control/program_ground.h"
#include "harness/control/program_plan.h"
#include "harness/control/progress_files.h"
#include "harness/control/sampler.h"
#include "harness/control/told_numbers.h"
#include "harness/launch/process.h"
#include "harness/record/command_record.h"
#include "harness/record/transcript.h"

namespace faultline::run {
namespace {

// How often counters and progress are read and the timeline is looked at.
constexpr Duration kCommandTick = 1ms;
// From SIGTERM to SIGKILL.
constexpr Duration kGrace = 2s;
// For the guards after that: the kernel tears processes down, and the last output is written.
constexpr Duration kGuardBudget = 6s;
// Of each of the two files of a process.
constexpr std::int64_t kMostOutput = 16 << 20;

class CommandSession {
 public:
  CommandSession(const scenario::Scenario& scenario, const PlannedRun& planned,
                 const SessionOptions& options, Interrupt& interrupt)
      : scenario_(scenario),
        command_(scenario.workload.command),
        planned_(planned),
        options_(options),
        interrupt_(interrupt),
        record_(scenario, planned) {}

  Result<SessionResult> execute();

 private:
  Status prepare();
  Status prepareFolders();
  Status resolvePrograms();
  void prepareRecovery();
  Status startGuards();
  SessionResult interruptedResult();
  Status loop();
  Status tick();
  Status askToEnd();
  Status received(std::size_t guard, const wire::FromGuard& message);
  void note(const RunEvent& event) {
    record_.add(event);
    if (options_.transcript != nullptr) options_.transcript->add(event);
  }
  void allStarted(TimePoint t0);
  Status processEnded(std::size_t guard, const wire::GuardedEnded& message);
  void lookAtProgress(TimePoint time);
  void lookAtRecovery(TimePoint time);
  void rebuilt(const std::optional<command::Rebuildings::Rebuilding>& made);
  bool mayDie(const launch::ExitStatus& status) const;
  void iterationBegan(int iteration, TimePoint time);
  void end(reports::RunStatus status, const std::string& message);
  void readNumbers();
  void logOutput(const ProgramPlan::Process& process);
  std::string folderName() const;
  Duration limit() const { return command_.timeLimit.value_or(scenario_.limits.deadline); }
  ProgramPlan::Process& processOf(std::size_t guard, std::size_t program);

  const scenario::Scenario& scenario_;
  const command::Command& command_;
  const PlannedRun& planned_;
  const SessionOptions& options_;
  Interrupt& interrupt_;
  CommandRecord record_;

  std::string folder_;  // of the run, absolute
  ProgramPlan plan_;
  std::unique_ptr<ProgramGround> ground_;
  std::optional<Sampler> sampler_;
  std::optional<FaultControl> faults_;
  std::optional<ProgressFiles> progress_;
  // Where the programs are to make their communicator anew.
  std::optional<RecoveryFiles> recovery_;
  std::optional<command::Rebuildings> rebuildings_;
  TimePoint began_{};
  std::size_t startedGuards_ = 0;
  TimePoint lastStart_{};  // of a node's programs
  std::set<std::size_t> finishedGuards_;
  bool toBeEnded_ = false;
  std::optional<TimePoint> endingSince_;  // the programs were asked to end
  std::vector<std::string> cutFiles_;     // that would have become too large
  std::optional<Status> guardError_;      // the bench itself failed
  std::vector<std::uint64_t> markBytes_;  // by node, when the present iteration began
  std::optional<int> markIteration_;
  int iteration_ = -1;  // that the programs began last
  bool interrupted_ = false;
};

std::string CommandSession::folderName() const {
  return commandFolder(planned_.strategy->name, planned_.block);
}

ProgramPlan::Process& CommandSession::processOf(std::size_t guard, std::size_t program) {
  return plan_.processes[guard * static_cast<std::size_t>(command_.perNode) + program];
}

Status CommandSession::prepareFolders() {
  std::error_code error;
  folder_ = std::filesystem::absolute(fmt::format("{}/{}", options_.folder.path(), folderName()))
                .string();
  ASSIGN_OR_RETURN(plan_, planPrograms(scenario_, planned_, folder_));
  // What an earlier run left would be taken for this one's.
  RETURN_IF_ERROR(options_.folder.makeFolder(folderName()));
  for (const ProgramPlan::Process& process : plan_.processes) {
    if (!error) std::filesystem::create_directories(process.folder, error);
  }
  if (error) return errorf(Code::kIo, "create an empty folder {}: {}", folder_, error.message());
  return okStatus();
}

Status CommandSession::resolvePrograms() {
  for (ProgramPlan::Process& process : plan_.processes) {
    wire::GuardedProgram& program = process.program;
    const auto own = program.environment.find("PATH");
    const char* const inherited = std::getenv("PATH");
    const std::string path = own != program.environment.end() ? own->second
                             : inherited != nullptr           ? inherited
                                                              : "/usr/bin:/bin";
    ASSIGN_OR_RETURN(program.executable,
                     findExecutable(program.arguments.front(), program.workingDirectory, path));
  }
  return okStatus();
}

Status CommandSession::prepare() {
  RETURN_IF_ERROR(prepareFolders());
  RETURN_IF_ERROR(resolvePrograms());
  ASSIGN_OR_RETURN(ground_, makeGround(scenario_, folder_, interrupt_));
  sampler_.emplace(ground_->sampler());
  RETURN_IF_ERROR(sampler_->sample(now()));
  if (planned_.arm == reports::Arm::kFaulted) {
    ASSIGN_OR_RETURN(faults_, ground_->faults(scenario_));
    RETURN_IF_ERROR(faults_->step(now(), *sampler_));  // those that are there before the start
  }
  std::vector<std::string> files;
  for (const ProgramPlan::Process& process : plan_.processes) files.push_back(process.progress);
  progress_.emplace(std::move(files));
  prepareRecovery();
  return startGuards();
}

void CommandSession::prepareRecovery() {
  if (!planned_.strategy->options.has(baseline::kMode)) return;
  const std::string mode = planned_.strategy->options.get<std::string>(baseline::kMode);
  if (!baseline::rebuildsItself(mode)) return;
  std::vector<std::string> files;
  for (const ProgramPlan::Process& process : plan_.processes) {
    files.push_back(fmt::format("{}/{}", process.folder, baseline::kRecoveryFile));
  }
  recovery_.emplace(std::move(files));
  rebuildings_.emplace(command_.processes(), mode == baseline::kShrinkMode);
}

Status CommandSession::startGuards() {
  std::vector<ProgramGround::NodeJob> jobs;
  for (std::size_t index = 0; index < command_.nodes.size(); ++index) {
    ProgramGround::NodeJob& node = jobs.emplace_back();
    node.node = command_.nodes[index];
    node.job.outputLimit = kMostOutput;
    for (int local = 0; local < command_.perNode; ++local) {
      node.job.programs.push_back(processOf(index, static_cast<std::size_t>(local)).program);
    }
  }
  return ground_->start(std::move(jobs), options_.logFd);
}

/// Before there was a cluster.
SessionResult CommandSession::interruptedResult() {
  note(event::Failed{now(), reports::RunStatus::kFailed, "interrupted"});
  SessionResult result;
  result.interrupted = true;
  if (options_.transcript != nullptr) options_.transcript->runEnded({});
  result.recorded = record_.finish({});
  return result;
}

Result<SessionResult> CommandSession::execute() {
  began_ = now();
  note(event::Started{began_});  // until all programs are
  const Status prepared = prepare();
  if (prepared.code() == Code::kAborted && interrupt_.pending()) return interruptedResult();
  RETURN_IF_ERROR(prepared);
  began_ = now();  // a cluster may take longer to make than a run may last
  Status looped = loop();
  if (looped.ok()) looped = sampler_->sample(now());
  Status reverted;
  if (faults_) reverted = interrupted_ ? faults_->abandon() : faults_->revertAll();
  const Status killed = ground_->kill();
  RETURN_IF_ERROR(looped);
  RETURN_IF_ERROR(reverted);
  RETURN_IF_ERROR(killed);

  if (rebuildings_ && !record_.hasFailed()) {
    // Ends that came in the last step of the loop may have been told before.
    lookAtRecovery(now());
    if (const std::string problem = rebuildings_->problem(); !problem.empty()) {
      note(event::Invalid{fmt::format("{}: {}; how a program takes part: docs/command.md",
                                      planned_.strategy->name, problem)});
    }
  }
  readNumbers();
  SessionResult result;
  result.interrupted = interrupted_;
  ASSIGN_OR_RETURN(result.cluster, ground_->describe());
  Observed observed = observedBy(*sampler_, faults_, record_.start());
  if (options_.transcript != nullptr) options_.transcript->runEnded(observed);
  result.recorded = record_.finish(std::move(observed));
  if (options_.keepCluster) {
    faults_.reset();  // refers to the cluster
    result.keptCluster = ground_->keep();
  }
  return result;
}

Status CommandSession::loop() {
  while (finishedGuards_.size() < command_.nodes.size()) {
    RETURN_IF_ERROR(ground_->poll(kCommandTick, interrupt_,
                                  [this](std::size_t guard, const wire::FromGuard& message) {
                                    return received(guard, message);
                                  }));
    if (guardError_) return *guardError_;
    if (interrupt_.pending()) {
      interrupted_ = true;
      note(event::Failed{now(), reports::RunStatus::kFailed, "interrupted"});
      return okStatus();
    }
    RETURN_IF_ERROR(tick());
    if (options_.progress) options_.progress(endingSince_ ? "ending" : "running", iteration_);
    // Guards that have not come to their end are killed, and everything with them.
    if (endingSince_ && now() > *endingSince_ + kGrace + kGuardBudget) return okStatus();
  }
  return okStatus();
}

Status CommandSession::tick() {
  const TimePoint time = now();
  RETURN_IF_ERROR(sampler_->keepUp(time));
  if (options_.load != nullptr) options_.load->keepUp(time);
  if (endingSince_) return okStatus();
  lookAtProgress(time);
  lookAtRecovery(time);
  if (faults_) RETURN_IF_ERROR(faults_->step(time, *sampler_));
  const bool started = startedGuards_ == command_.nodes.size();
  if (record_.endedProcesses() < command_.processes() &&
      time > (started ? record_.start() : began_) + limit()) {
    end(reports::RunStatus::kHung,
        fmt::format("not over within {}: all processes were ended", formatDuration(limit())));
  }
  return toBeEnded_ ? askToEnd() : okStatus();
}

Status CommandSession::askToEnd() {
  // First: what struck the programs must still be there to be seen.
  if (faults_) RETURN_IF_ERROR(faults_->revertAll());
  endingSince_ = now();
  ground_->broadcast(wire::EndPrograms{kGrace});
  return okStatus();
}

Status CommandSession::received(std::size_t guard, const wire::FromGuard& message) {
  const int node = command_.nodes[guard];
  if (const auto* const started = std::get_if<wire::GuardStarted>(&message)) {
    lastStart_ = std::max(lastStart_, started->at);
    if (++startedGuards_ == command_.nodes.size()) allStarted(lastStart_);
  } else if (const auto* const ended = std::get_if<wire::GuardedEnded>(&message)) {
    return processEnded(guard, *ended);
  } else if (const auto* const finished = std::get_if<wire::GuardFinished>(&message)) {
    finishedGuards_.insert(guard);
    cutFiles_.insert(cutFiles_.end(), finished->cut.begin(), finished->cut.end());
  } else if (const auto* const error = std::get_if<wire::GuardError>(&message)) {
    guardError_ = error->outcome.status().withContext(fmt::format("the programs of node {}", node));
  } else if (const auto* const gone = std::get_if<wire::Gone>(&message);
             gone != nullptr && !finishedGuards_.contains(guard) && !guardError_) {
    guardError_ = errorf(Code::kInternal, "the guard of node {} is gone: {}", node, gone->message);
  }
  return okStatus();
}

/// `t0`: a little ago. What rails carried since then is not in their totals.
void CommandSession::allStarted(TimePoint t0) {
  note(event::Started{t0});
  sampler_->start(t0);
  if (faults_) faults_->started(t0);
}

Status CommandSession::processEnded(std::size_t guard, const wire::GuardedEnded& message) {
  if (message.program < 0 || message.program >= command_.perNode) {
    return errorf(Code::kInvalidArgument, "the guard of node {} has no program {}",
                  command_.nodes[guard], message.program);
  }
  const ProgramPlan::Process& process = processOf(guard, static_cast<std::size_t>(message.program));
  const launch::ExitStatus status{message.code, message.signal};
  const TimePoint ended = message.at;
  const TimePoint when = std::max(record_.start(), ended);
  const bool well = mayDie(status) || (status.signal == 0 &&
                                       std::ranges::count(command_.successExit, status.code) > 0);
  const std::string output = fmt::format("{}/rank{}", folderName(), process.rank);
  if (!well && !toBeEnded_) {
    end(reports::RunStatus::kFailed,
        fmt::format("rank {} on node {}: {}; see {}/{}", process.rank, process.node,
                    status.toString(), output, kStderrFile));
    logOutput(process);
  }
  // With the process ends the iteration that it was in. Where none is told of, its end is all that
  // shows that it has gone on.
  constexpr int kNoIteration = -1;
  if (faults_)
    faults_->iterationEnded(process.rank, record_.open().value_or(kNoIteration), when, *sampler_);
  note(event::ProgramEnded{process.rank, process.node, ended, status.code, status.signal, output});
  if (rebuildings_) {
    lookAtRecovery(when);  // what it told before it ended
    rebuilt(rebuildings_->ended(process.rank, when));
  }
  return okStatus();
}

/// Others go on without a process that a fault killed, where that is what the row is about.
bool CommandSession::mayDie(const launch::ExitStatus& status) const {
  return rebuildings_ && rebuildings_->mayLose() && faults_ && !faults_->damages().empty() &&
         status.signal == SIGKILL;
}

void CommandSession::lookAtRecovery(TimePoint time) {
  if (!recovery_) return;
  const Status looked = recovery_->look([&](int rank, const command::RecoveryEvent& event) {
    rebuilt(rebuildings_->told(rank, event, time));
  });
  if (!looked.ok()) end(reports::RunStatus::kFailed, looked.message());
}

void CommandSession::rebuilt(const std::optional<command::Rebuildings::Rebuilding>& made) {
  if (!made) return;
  std::optional<TimePoint> fault;
  if (faults_) fault = faults_->changes().latestBefore(made->noticed);
  note(event::Rebuilt{*made, fault});
}

void CommandSession::lookAtProgress(TimePoint time) {
  const Status looked = progress_->look([&](int rank, int iteration) {
    const std::optional<int> before = record_.open();
    note(event::Progressed{rank, iteration, time});
    const std::optional<int> open = record_.open();
    if (open == before) return;
    if (before && faults_) faults_->iterationEnded(rank, *before, time, *sampler_);
    if (open) iterationBegan(*open, time);
  });
  if (!looked.ok()) end(reports::RunStatus::kFailed, looked.message());
}

void CommandSession::iterationBegan(int iteration, TimePoint time) {
  iteration_ = iteration;
  if (!faults_) return;
  faults_->iterationBegan(iteration, time, time, *sampler_);  // reads the counters, if it counts
  // An iteration without a fault is the measure of a normal one.
  const bool whole = markIteration_ && iteration == *markIteration_ + 1;
  std::vector<std::uint64_t> bytes;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    bytes.push_back(sampler_->nodeBytes(node));
    if (whole && faults_->damages().empty()) {
      faults_->warmupIteration(node, bytes.back() - markBytes_[static_cast<std::size_t>(node)]);
    }
  }
  markBytes_ = std::move(bytes);
  markIteration_ = iteration;
}

void CommandSession::end(reports::RunStatus status, const std::string& message) {
  note(event::Failed{now(), status, message});
  toBeEnded_ = true;
}

void CommandSession::readNumbers() {
  std::vector<std::string> folders;
  for (const ProgramPlan::Process& process : plan_.processes) folders.push_back(process.folder);
  const bool cut = !cutFiles_.empty() && !command_.metrics.empty();
  if (record_.hasFailed()) {
    if (!cut) note(event::Told{toldBeforeFailure(command_.metrics, folders), {}});
    return;
  }
  if (cut) {
    note(event::Told{{},
                     fmt::format("{} is cut: a program printed more than {}, and what it told "
                                 "may be missing",
                                 cutFiles_.front(), formatSize(kMostOutput))});
    return;
  }
  const Result<ToldNumbers> told = toldNumbers(command_.metrics, folders);
  note(told.ok() ? event::Told{*told, {}} : event::Told{{}, told.status().message()});
}

/// Into the log: the end of what it printed. Some of it may still be on its way.
void CommandSession::logOutput(const ProgramPlan::Process& process) {
  for (const std::string& file : {process.program.stderrPath, process.program.stdoutPath}) {
    const std::string text = lastLines(file);
    if (text.empty()) continue;
    const std::string entry = printable(fmt::format("the end of {}:\n{}", file, text)) + "\n";
    (void)!::write(options_.logFd, entry.data(), entry.size());
  }
}

}  // namespace

Result<SessionResult> runCommandSession(const scenario::Scenario& scenario,
                                        const PlannedRun& planned, const SessionOptions& options,
                                        Interrupt& interrupt) {
  CommandSession session(scenario, planned, options, interrupt);
  return session.execute();
}

}  // namespace faultline::run

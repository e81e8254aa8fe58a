#include "harness/control/program_job.h"

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
#include "harness/control/program_plan.h"
#include "harness/control/progress_files.h"
#include "harness/control/told_numbers.h"
#include "harness/launch/process.h"
#include "harness/record/command_record.h"
#include "harness/site/kind.h"

namespace faultline::run {
namespace {

// From SIGTERM to SIGKILL.
constexpr Duration kGrace = 2s;
// For the guards after that: the kernel tears processes down, and the last output is written.
constexpr Duration kGuardBudget = 6s;
// Of each of the two files of a process.
constexpr std::int64_t kMostOutput = 16 << 20;

class ProgramJob final : public Job {
 public:
  explicit ProgramJob(RunParts& run)
      : Job(run),
        scenario_(run.scenario),
        command_(run.scenario.workload.command),
        planned_(run.planned),
        record_(scenario_, planned_) {}

  Status prepare() override;
  std::string folder() const override;
  Status begin() override;
  Status received(int guard, const nlohmann::json& message) override;
  Status tick(TimePoint time) override;
  bool isOver() const override;
  void interrupted() override {
    note(event::Failed{now(), reports::RunStatus::kFailed, "interrupted"});
  }
  void lost(const std::string& what) override {
    note(event::Failed{now(), reports::RunStatus::kFailed, what});
  }
  Status conclude() override;
  RecordedRun finish(Observed observed) override { return record_.finish(std::move(observed)); }
  std::string_view phase() const override { return endingSince_ ? "ending" : "running"; }
  int iteration() const override { return iteration_; }
  TimePoint start() const override { return record_.start(); }

 protected:
  void record(const RunEvent& event) override { record_.add(event); }

 private:
  Status plan();
  Status prepareFolders();
  std::vector<site::WrittenFile> writtenFiles(int rank) const;
  Status resolvePrograms();
  void prepareRecovery();
  Status askToEnd();
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
  CommandRecord record_;

  ProgramPlan plan_;
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
};

std::string ProgramJob::folder() const {
  return fmt::format("{}/{}", run_.options.folder.absolutePath(), folderName());
}

std::string ProgramJob::folderName() const {
  return commandFolder(planned_.strategy->name, planned_.block);
}

ProgramPlan::Process& ProgramJob::processOf(std::size_t guard, std::size_t program) {
  return plan_.processes[guard * static_cast<std::size_t>(command_.perNode) + program];
}

Status ProgramJob::plan() {
  ASSIGN_OR_RETURN(
      plan_, planPrograms(scenario_, planned_, folder(), networkNames(run_.cluster->network()),
                          [this](int node, const std::string& folder) {
                            return run_.cluster->folderThere(node, folder);
                          }));
  return okStatus();
}

Status ProgramJob::prepareFolders() {
  // What an earlier run left would be taken for this one's.
  RETURN_IF_ERROR(run_.options.folder.makeFolder(folderName()));
  for (const ProgramPlan::Process& process : plan_.processes) {
    std::error_code error;
    std::filesystem::create_directories(process.folder, error);
    if (error) return errorf(Code::kIo, "create an empty folder {}: {}", folder(), error.message());
  }
  return okStatus();
}

Status ProgramJob::resolvePrograms() {
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

Status ProgramJob::prepare() {
  // What is not known before the cluster is built is looked for there, too.
  if (scenario_.cluster.kind->findsRails) return okStatus();
  RETURN_IF_ERROR(plan());
  RETURN_IF_ERROR(prepareFolders());
  return scenario_.cluster.kind->sharesFolder ? resolvePrograms() : okStatus();
}

void ProgramJob::prepareRecovery() {
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

/// Besides what they print: what a process of that number tells by.
std::vector<site::WrittenFile> ProgramJob::writtenFiles(int rank) const {
  const auto own = [&](std::string_view file) { return fmt::format("rank{}/{}", rank, file); };
  std::vector<site::WrittenFile> files;
  if (!command_.progress.empty()) files.push_back({own(command_.progress), wire::Bringing::kLines});
  if (recovery_) files.push_back({own(baseline::kRecoveryFile), wire::Bringing::kLines});
  std::set<std::string> numbers;
  for (const command::Metric& metric : command_.metrics) {
    if (!metric.json.empty()) numbers.insert(metric.json);
  }
  for (const std::string& file : numbers) files.push_back({own(file), wire::Bringing::kAtEnd});
  return files;
}

Status ProgramJob::begin() {
  if (scenario_.cluster.kind->findsRails) {
    RETURN_IF_ERROR(plan());
    RETURN_IF_ERROR(prepareFolders());
  }
  std::vector<std::string> files;
  for (const ProgramPlan::Process& process : plan_.processes) files.push_back(process.progress);
  progress_.emplace(std::move(files));
  prepareRecovery();
  std::vector<site::GuardProcess> guards;
  for (std::size_t index = 0; index < command_.nodes.size(); ++index) {
    site::GuardProcess& guard = guards.emplace_back();
    guard.node = command_.nodes[index];
    guard.job.outputLimit = kMostOutput;
    guard.folder = folder();
    for (int local = 0; local < command_.perNode; ++local) {
      const ProgramPlan::Process& process = processOf(index, static_cast<std::size_t>(local));
      guard.job.programs.push_back(process.program);
      guard.needs.insert(guard.needs.end(), process.needs.begin(), process.needs.end());
      const std::vector<site::WrittenFile> written = writtenFiles(process.rank);
      guard.files.insert(guard.files.end(), written.begin(), written.end());
    }
  }
  ASSIGN_OR_RETURN(run_.processes, run_.cluster->startGuards(guards, run_.options.logFd));
  began_ = now();  // a cluster may take longer to make than a run may last
  return okStatus();
}

bool ProgramJob::isOver() const {
  if (finishedGuards_.size() == command_.nodes.size()) return true;
  // Guards that have not come to their end are killed, and everything with them.
  return endingSince_ && now() > *endingSince_ + kGrace + kGuardBudget;
}

Status ProgramJob::conclude() {
  if (rebuildings_ && !record_.hasFailed()) {
    // Ends that came in the last step of the loop may have been told before.
    lookAtRecovery(now());
    if (const std::string problem = rebuildings_->problem(); !problem.empty()) {
      note(event::Invalid{fmt::format("{}: {}; how a program takes part: docs/command.md",
                                      planned_.strategy->name, problem)});
    }
  }
  readNumbers();
  return okStatus();
}

Status ProgramJob::tick(TimePoint time) {
  if (guardError_) return *guardError_;
  if (endingSince_) return okStatus();
  lookAtProgress(time);
  lookAtRecovery(time);
  if (run_.faults) RETURN_IF_ERROR(run_.faults->step(time, *run_.sampler));
  const bool started = startedGuards_ == command_.nodes.size();
  if (record_.endedProcesses() < command_.processes() &&
      time > (started ? record_.start() : began_) + limit()) {
    end(reports::RunStatus::kHung,
        fmt::format("not over within {}: all processes were ended", formatDuration(limit())));
  }
  return toBeEnded_ ? askToEnd() : okStatus();
}

Status ProgramJob::askToEnd() {
  // First: what struck the programs must still be there to be seen.
  if (run_.faults) RETURN_IF_ERROR(run_.faults->revertAll());
  endingSince_ = now();
  run_.processes->broadcast(wire::toJson(wire::ToGuard(wire::EndPrograms{kGrace})));
  return okStatus();
}

Status ProgramJob::received(int place, const nlohmann::json& text) {
  ASSIGN_OR_RETURN(const auto message, wire::fromJson<wire::FromGuard>(text));
  const auto guard = static_cast<std::size_t>(place);
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
void ProgramJob::allStarted(TimePoint t0) {
  note(event::Started{t0});
  run_.sampler->start(t0);
  if (run_.faults) run_.faults->started(t0);
}

Status ProgramJob::processEnded(std::size_t guard, const wire::GuardedEnded& message) {
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
  if (run_.faults)
    run_.faults->iterationEnded(process.rank, record_.open().value_or(kNoIteration), when,
                                *run_.sampler);
  note(event::ProgramEnded{process.rank, process.node, ended, status.code, status.signal, output});
  if (rebuildings_) {
    lookAtRecovery(when);  // what it told before it ended
    rebuilt(rebuildings_->ended(process.rank, when));
  }
  return okStatus();
}

/// Others go on without a process that a fault killed, where that is what the row is about.
bool ProgramJob::mayDie(const launch::ExitStatus& status) const {
  return rebuildings_ && rebuildings_->mayLose() && run_.faults &&
         !run_.faults->damages().empty() && status.signal == SIGKILL;
}

void ProgramJob::lookAtRecovery(TimePoint time) {
  if (!recovery_) return;
  const Status looked = recovery_->look([&](int rank, const command::RecoveryEvent& event) {
    rebuilt(rebuildings_->told(rank, event, time));
  });
  if (!looked.ok()) end(reports::RunStatus::kFailed, looked.message());
}

void ProgramJob::rebuilt(const std::optional<command::Rebuildings::Rebuilding>& made) {
  if (!made) return;
  std::optional<TimePoint> fault;
  if (run_.faults) fault = run_.faults->changes().latestBefore(made->noticed);
  note(event::Rebuilt{*made, fault});
}

void ProgramJob::lookAtProgress(TimePoint time) {
  const Status looked = progress_->look([&](int rank, int iteration) {
    const std::optional<int> before = record_.open();
    note(event::Progressed{rank, iteration, time});
    const std::optional<int> open = record_.open();
    if (open == before) return;
    if (before && run_.faults) run_.faults->iterationEnded(rank, *before, time, *run_.sampler);
    if (open) iterationBegan(*open, time);
  });
  if (!looked.ok()) end(reports::RunStatus::kFailed, looked.message());
}

void ProgramJob::iterationBegan(int iteration, TimePoint time) {
  iteration_ = iteration;
  if (!run_.faults) return;
  run_.faults->iterationBegan(iteration, time, time,
                              *run_.sampler);  // reads the counters, if it counts
  // An iteration without a fault is the measure of a normal one.
  const bool whole = markIteration_ && iteration == *markIteration_ + 1;
  std::vector<std::uint64_t> bytes;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    bytes.push_back(run_.sampler->nodeBytes(node));
    if (whole && run_.faults->damages().empty()) {
      run_.faults->warmupIteration(node, bytes.back() - markBytes_[static_cast<std::size_t>(node)]);
    }
  }
  markBytes_ = std::move(bytes);
  markIteration_ = iteration;
}

void ProgramJob::end(reports::RunStatus status, const std::string& message) {
  note(event::Failed{now(), status, message});
  toBeEnded_ = true;
}

void ProgramJob::readNumbers() {
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
void ProgramJob::logOutput(const ProgramPlan::Process& process) {
  for (const char* name : {kStderrFile, kStdoutFile}) {
    const std::string file = fmt::format("{}/{}", process.folder, name);
    const std::string text = lastLines(file);
    if (text.empty()) continue;
    const std::string entry = printable(fmt::format("the end of {}:\n{}", file, text)) + "\n";
    (void)!::write(run_.options.logFd, entry.data(), entry.size());
  }
}

}  // namespace

std::unique_ptr<Job> makeProgramJob(RunParts& run) { return std::make_unique<ProgramJob>(run); }

}  // namespace faultline::run

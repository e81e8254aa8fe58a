#include "harness/agent/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/launch/lifeline.h"
#include "harness/launch/output_file.h"
#include "harness/launch/process.h"
#include "wire/guard.h"

namespace faultline::agent {
namespace {

using launch::ExitStatus;
using launch::kLifelineFd;
using launch::kMessagesFd;
using launch::Lifeline;
using launch::MessageChannel;
using launch::OutputFile;
using launch::Process;
using launch::SpawnOptions;

using nlohmann::json;

constexpr Duration kJobBudget = 10s;
// After SIGKILL a process is gone as soon as the kernel has torn it down.
constexpr Duration kKillBudget = 5s;
// Orphans of the programs are the guard's to reap.
constexpr Duration kReapInterval = 1s;

class Guard {
 public:
  explicit Guard(MessageChannel& controller) : controller_(controller) {}

  Status start(const wire::GuardJob& job);
  /// Until all programs have ended.
  Status serve();
  /// Ends what is left of them, and of what they have started; what was printed is in the files
  /// then, as far as it goes.
  Status clear();
  Status tell(const wire::FromGuard& message) { return controller_.send(wire::toJson(message)); }
  std::vector<std::string> cutFiles() const;

 private:
  struct Program {
    Process process;
    bool ended = false;
  };

  Status wait();
  Status pump();
  Status obey();
  Status lookForEnds();
  void endAll(int number);
  /// Of processes that the programs left behind.
  void reapOrphans();
  bool allEnded() const;

  MessageChannel& controller_;
  std::vector<Program> programs_;
  std::vector<OutputFile> files_;
  std::optional<TimePoint> killAt_;
};

/// /proc with the processes by the numbers that they know themselves by, and /sys with the
/// interfaces of the network. Where mounting is forbidden, in a container say, programs see those
/// of the machine.
Status mountViews(const UniqueFd& network) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return okStatus();
  (void)::mount("proc", "/proc", "proc", kFlags, nullptr);
  if (!network) return okStatus();
  // What it shows is of the network in which it is mounted.
  const UniqueFd own(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own || ::setns(network.get(), CLONE_NEWNET) != 0) return okStatus();
  (void)::mount("sysfs", "/sys", "sysfs", kFlags, nullptr);
  if (::setns(own.get(), CLONE_NEWNET) == 0) return okStatus();
  return Status::fromErrno(errno, "leave the node's network");
}

Status Guard::start(const wire::GuardJob& job) {
  UniqueFd network;
  if (!job.networkNamespace.empty()) {
    network.reset(::open(job.networkNamespace.c_str(), O_RDONLY | O_CLOEXEC));
    if (!network) return Status::fromErrno(errno, "open " + job.networkNamespace);
  }
  RETURN_IF_ERROR(mountViews(network));
  for (const wire::GuardedProgram& program : job.programs) {
    ASSIGN_OR_RETURN(OutputFile out, OutputFile::create(program.stdoutPath, job.outputLimit));
    ASSIGN_OR_RETURN(OutputFile err, OutputFile::create(program.stderrPath, job.outputLimit));
    SpawnOptions options;
    options.foreign = true;
    options.executable = program.executable;
    options.arguments = program.arguments;
    options.environment = program.environment;
    options.working_directory = program.workingDirectory;
    options.namespace_fd = network.get();
    options.stdout_fd = out.writeEnd();
    options.stderr_fd = err.writeEnd();
    ASSIGN_OR_RETURN(Process process, Process::spawn(options));
    out.closeWriteEnd();
    err.closeWriteEnd();
    programs_.push_back({std::move(process)});
    files_.push_back(std::move(out));
    files_.push_back(std::move(err));
  }
  return tell(wire::GuardStarted{now()});
}

Status Guard::serve() {
  while (!allEnded()) {
    RETURN_IF_ERROR(wait());
    RETURN_IF_ERROR(pump());
    RETURN_IF_ERROR(obey());
    RETURN_IF_ERROR(lookForEnds());
    reapOrphans();
    if (killAt_ && now() >= *killAt_) endAll(SIGKILL);
  }
  return okStatus();
}

Status Guard::clear() {
  endAll(SIGKILL);
  const TimePoint deadline = now() + kKillBudget;
  Status pumped;
  while (now() < deadline) {
    if (const Status status = pump(); pumped.ok()) pumped = status;
    // ECHILD: nobody is left, and so nobody writes any more.
    if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) {
      const Status last = pump();
      return pumped.ok() ? last : pumped;
    }
    ::poll(nullptr, 0, 1);
  }
  return errorf(Code::kDeadlineExceeded, "processes of the programs outlive SIGKILL");
}

Status Guard::wait() {
  std::vector<pollfd> ready{{kLifelineFd, POLLIN, 0}, {controller_.fd(), POLLIN, 0}};
  for (const OutputFile& file : files_) ready.push_back({file.fd(), POLLIN, 0});
  for (const Program& program : programs_) {
    if (!program.ended) ready.push_back({program.process.pidFd(), POLLIN, 0});
  }
  Duration pause = kReapInterval;
  if (killAt_) pause = std::clamp(*killAt_ - now(), Duration(1ms), pause);
  if (::poll(ready.data(), ready.size(), static_cast<int>(toMilliseconds(pause)) + 1) < 0 &&
      errno != EINTR) {
    return Status::fromErrno(errno, "wait for the programs");
  }
  // Nobody ever writes into the lifeline: whatever happens to it is its end, and with this process
  // the kernel ends all of its namespace.
  if (ready[0].revents != 0) ::_exit(Lifeline::kExitOrphaned);
  return okStatus();
}

/// All of them, also when one has no room.
Status Guard::pump() {
  Status first;
  for (OutputFile& file : files_) {
    if (const Status status = file.pump(); first.ok()) first = status;
  }
  return first;
}

Status Guard::obey() {
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
    if (!message) return okStatus();
    ASSIGN_OR_RETURN(const auto asked, wire::fromJson<wire::ToGuard>(*message));
    const auto* const end = std::get_if<wire::EndPrograms>(&asked);
    if (end == nullptr) return errorf(Code::kInvalidArgument, "a second job for a guard");
    killAt_ = now() + end->grace;
    endAll(SIGTERM);
  }
}

Status Guard::lookForEnds() {
  for (std::size_t index = 0; index < programs_.size(); ++index) {
    Program& program = programs_[index];
    if (program.ended) continue;
    ASSIGN_OR_RETURN(const std::optional<ExitStatus> ended, program.process.tryWait());
    if (!ended) continue;
    program.ended = true;
    RETURN_IF_ERROR(pump());  // its last words
    RETURN_IF_ERROR(tell(wire::GuardedEnded{.program = static_cast<int>(index),
                                            .at = now(),
                                            .code = ended->code,
                                            .signal = ended->signal}));
  }
  return okStatus();
}

/// All processes of the namespace but this one.
void Guard::endAll(int number) { (void)::kill(-1, number); }

void Guard::reapOrphans() {
  // A look that reaps nothing: the programs themselves are reaped where their end is told.
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    for (const Program& program : programs_) {
      if (program.process.pid() == info.si_pid && !program.ended) return;
    }
    (void)::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

bool Guard::allEnded() const {
  for (const Program& program : programs_) {
    if (!program.ended) return false;
  }
  return true;
}

std::vector<std::string> Guard::cutFiles() const {
  std::vector<std::string> cut;
  for (const OutputFile& file : files_) {
    if (file.cut()) cut.push_back(file.path());
  }
  return cut;
}

/// From the first message to the last.
Status serveOne(MessageChannel& controller) {
  // It ends all processes that it sees: outside a namespace of its own, those of the machine.
  constexpr pid_t kFirst = 1;
  if (::getpid() != kFirst) {
    return errorf(Code::kInvalidArgument,
                  "a guard must be the first process of a process namespace of its own");
  }
  ASSIGN_OR_RETURN(const json message, controller.receiveWithin(kJobBudget));
  ASSIGN_OR_RETURN(const auto job, (wire::firstFromJson<wire::ToGuard, wire::GuardJob>(message)));
  Guard guard(controller);
  Status status = guard.start(job);
  if (status.ok()) status = guard.serve();
  const Status cleared = guard.clear();
  RETURN_IF_ERROR(status.ok() ? cleared : status);
  return guard.tell(wire::GuardFinished{guard.cutFiles()});
}

}  // namespace

int guardMain() {
  constexpr int kExitError = 1;
  // A file that passes the limit of sizes is an error that says so.
  std::signal(SIGXFSZ, SIG_IGN);
  MessageChannel controller{UniqueFd(kMessagesFd)};
  const Status status = serveOne(controller);
  if (status.ok()) return 0;
  const wire::FromGuard error(wire::GuardError{wire::Outcome::of(status)});
  (void)controller.send(wire::toJson(error));
  return kExitError;
}

}  // namespace faultline::agent

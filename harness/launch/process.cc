#include "harness/launch/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/limits.h"
#include "base/units.h"
#include "harness/launch/privileges.h"

namespace faultline::launch {
namespace {

constexpr int kExitSpawnFailed = 127;  // as shells do

/// What failed between fork and exec, told through a pipe that a successful exec closes.
struct Failure {
  enum Step : int { kParentGone, kUser, kNamespace, kDirectory, kDescriptors, kExecute } step;
  int error;
};

const char* nameOf(Failure::Step step) {
  switch (step) {
    case Failure::kParentGone:
      return "the controller ended meanwhile";
    case Failure::kUser:
      return "be the same user in a user namespace of its own";
    case Failure::kNamespace:
      return "enter the node's namespace";
    case Failure::kDirectory:
      return "change to its working directory";
    case Failure::kDescriptors:
      return "arrange descriptors";
    case Failure::kExecute:
      return "execute";
  }
  return "unknown step";
}

/// Everything the child needs, made before the fork: afterwards no memory may be allocated.
struct Prepared {
  const char* executable;
  int (*body)();  ///< null: execute
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int namespace_fd;
  const char* working_directory;  ///< null: the caller's
  bool foreign;
  bool survives;
  std::vector<int> descriptors;  ///< what becomes 0, 1, 2, ...
  int failure_fd;
  pid_t parent;  ///< as the child sees it
  /// In a user namespace of its own: who it is there, and was outside.
  std::string userMap{}, groupMap{};
};

[[noreturn]] void fail(const Prepared& prepared, Failure::Step step) {
  const Failure failure{step, errno};
  [[maybe_unused]] const ssize_t written = ::write(prepared.failure_fd, &failure, sizeof failure);
  ::_exit(kExitSpawnFailed);
}

/// dup2 with care: a descriptor that is still needed must not be overwritten, so all move above the
/// target range first. The copies close themselves at exec.
void arrangeDescriptors(Prepared& prepared) {
  const int first_free = static_cast<int>(prepared.descriptors.size());
  for (int& fd : prepared.descriptors) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, first_free);
    if (fd < 0) fail(prepared, Failure::kDescriptors);
  }
  prepared.failure_fd = ::fcntl(prepared.failure_fd, F_DUPFD_CLOEXEC, first_free);
  for (int target = 0; target < first_free; ++target) {
    if (::dup2(prepared.descriptors[static_cast<std::size_t>(target)], target) < 0) {
      fail(prepared, Failure::kDescriptors);
    }
  }
  // What other libraries opened without close-on-exec must not keep namespaces alive. Marked, not
  // closed: the failure pipe is still needed. Old kernels do not have this: then it is as it was.
  ::syscall(SYS_close_range, first_free, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
}

/// Also where close_range is refused: by a filter that does not know it, or before Linux 5.9.
void closeAllFrom(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  constexpr rlim_t kEnough = 1 << 20;  // the kernel's own limit, where it has not been raised
  const int end = static_cast<int>(std::min(most.rlim_max, kEnough));
  for (int fd = first; fd < end; ++fd) ::close(fd);
}

void resetSignals(bool foreign) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (const int number : {SIGTERM, SIGPIPE, SIGXFSZ, SIGCHLD, SIGUSR1, SIGUSR2}) {
    ::sigaction(number, &action, nullptr);
  }
  // What was ignored when the program began stays so, as under nohup.
  for (const int number : {SIGHUP, SIGINT, SIGQUIT}) {
    struct sigaction before {};
    const bool ignored = ::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (!ignored) ::sigaction(number, &action, nullptr);
  }
  // Blocked and not ignored: a guard's programs are to have it as it was.
  sigset_t blocked;
  ::sigemptyset(&blocked);
  if (!foreign) ::sigaddset(&blocked, SIGINT);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

bool writeTo(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  return written;
}

/// The child between fork and exec: only async-signal-safe calls.
[[noreturn]] void runChild(Prepared& prepared) {
  if (!prepared.survives) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!prepared.userMap.empty()) {
    // Without the first the kernel lets nobody but the privileged map groups (user_namespaces(7)).
    (void)writeTo("/proc/self/setgroups", "deny");
    if (!writeTo("/proc/self/uid_map", prepared.userMap) ||
        !writeTo("/proc/self/gid_map", prepared.groupMap)) {
      fail(prepared, Failure::kUser);
    }
  }
  // The controller may have died before that line.
  if (::getppid() != prepared.parent) fail(prepared, Failure::kParentGone);
  if (prepared.namespace_fd >= 0 && ::setns(prepared.namespace_fd, CLONE_NEWNET) != 0) {
    fail(prepared, Failure::kNamespace);
  }
  arrangeDescriptors(prepared);
  if (prepared.foreign || prepared.survives) ::setsid();
  if (prepared.foreign) {
    ::close(kLifelineFd);
    ::close(kMessagesFd);
  }
  if (prepared.working_directory != nullptr && ::chdir(prepared.working_directory) != 0) {
    fail(prepared, Failure::kDirectory);
  }
  resetSignals(prepared.foreign);
  if (prepared.body != nullptr) {
    // Also the failure pipe, by which the parent knows that all is well.
    closeAllFrom(static_cast<int>(prepared.descriptors.size()));
    ::_exit(prepared.body());
  }
  ::execve(prepared.executable, prepared.arguments.data(), prepared.environment.data());
  fail(prepared, Failure::kExecute);
}

std::vector<std::string> mergedEnvironment(const std::map<std::string, std::string>& additions) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!additions.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : additions) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return callRefused(errno, "pipe2", "make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// fork, or into a process namespace of its own, of which glibc does not know: other threads of the
/// caller hold no lock of its (SpawnOptions::body).
pid_t forkInto(bool own_process_namespace, bool own_user_namespace) {
  if (!own_process_namespace) return ::fork();
  const unsigned long user = own_user_namespace ? CLONE_NEWUSER : 0;
  const unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | user | SIGCHLD;
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
}

/// The failure that the child told; nothing when exec closed the pipe.
std::optional<Failure> awaitExec(int fd) {
  Failure failure{};
  while (true) {
    const ssize_t size = ::read(fd, &failure, sizeof failure);
    if (size < 0 && errno == EINTR) continue;
    return size == sizeof failure ? std::optional(failure) : std::nullopt;
  }
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string ExitStatus::toString() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  return fmt::format("killed by signal {} ({})", signal, ::strsignal(signal));
}

Result<Process> Process::spawn(const SpawnOptions& options) {
  if (options.arguments.empty() && options.body == nullptr) {
    return errorf(Code::kInvalidArgument, "spawn {}: no program name", options.executable);
  }
  ASSIGN_OR_RETURN(Pipe lifeline, makePipe());
  ASSIGN_OR_RETURN(Pipe failure, makePipe());
  std::pair channel(MessageChannel{UniqueFd()}, MessageChannel{UniqueFd()});
  if (options.messages_fd < 0) {
    ASSIGN_OR_RETURN(channel, MessageChannel::makePair());
  }
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return Status::fromErrno(errno, "open /dev/null");
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = mergedEnvironment(options.environment);
  Prepared prepared{
      options.executable.c_str(),
      options.body,
      pointers(arguments),
      pointers(environment),
      options.namespace_fd,
      options.working_directory.empty() ? nullptr : options.working_directory.c_str(),
      options.foreign,
      options.survives,
      {options.stdin_fd >= 0 ? options.stdin_fd : null.get(),
       options.stdout_fd >= 0 ? options.stdout_fd : STDOUT_FILENO,
       options.stderr_fd >= 0 ? options.stderr_fd : STDERR_FILENO, lifeline.read_end.get(),
       options.messages_fd >= 0 ? options.messages_fd : channel.second.fd()},
      failure.write_end.get(),
      options.own_process_namespace ? 0 : ::getpid(),  // who is outside is not seen
  };
  prepared.descriptors.insert(prepared.descriptors.end(), options.inherited_fds.begin(),
                              options.inherited_fds.end());
  pid_t pid = forkInto(options.own_process_namespace, /*own_user_namespace=*/false);
  if (pid < 0 && options.own_process_namespace && errno == EPERM && ::geteuid() != 0) {
    prepared.userMap = fmt::format("{0} {0} 1", ::geteuid());
    prepared.groupMap = fmt::format("{0} {0} 1", ::getegid());
    pid = forkInto(true, /*own_user_namespace=*/true);
    if (pid < 0 && errno != EAGAIN) {
      return explainUserNamespaceRefusal(errno, readUserNamespaceFacts())
          .withContext("keep programs together in a process namespace");
    }
  }
  if (pid < 0 && options.own_process_namespace && errno != EAGAIN) {
    const int error = errno;
    constexpr const char* kAttempt = "start a process in namespaces of its own";
    return error == EPERM ? callRefused(error, "clone", kAttempt)
                          : cannotMakeNamespace(error, kAttempt, "pid mnt");
  }
  if (pid < 0) return cannotStart(errno, "start a process");
  if (pid == 0) runChild(prepared);

  failure.write_end.reset();
  if (const auto failed = awaitExec(failure.read_end.get())) {
    reap(pid);
    return Status::fromErrno(failed->error,
                             fmt::format("spawn {}: {}", options.executable, nameOf(failed->step)));
  }
  // Not reaped yet, so the number cannot have been given to somebody else.
  UniqueFd pid_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int pid_fd_error = errno;
  Process process(pid, std::move(pid_fd), std::move(lifeline.write_end), std::move(channel.first));
  if (!process.pid_fd_) return callRefused(pid_fd_error, "pidfd_open", "watch a process");
  if (!options.first_message.is_null()) {
    RETURN_IF_ERROR(process.messages_.send(options.first_message));
  }
  return process;
}

Process::Process(pid_t pid, UniqueFd pid_fd, UniqueFd lifeline, MessageChannel messages)
    : pid_(pid),
      pid_fd_(std::move(pid_fd)),
      lifeline_(std::move(lifeline)),
      messages_(std::move(messages)) {}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::move(other.pid_fd_)),
      lifeline_(std::move(other.lifeline_)),
      messages_(std::move(other.messages_)),
      ended_(other.ended_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  killAndReap();
  pid_ = std::exchange(other.pid_, -1);
  pid_fd_ = std::move(other.pid_fd_);
  lifeline_ = std::move(other.lifeline_);
  messages_ = std::move(other.messages_);
  ended_ = other.ended_;
  return *this;
}

Process::~Process() { killAndReap(); }

void Process::killAndReap() {
  if (pid_ < 0 || ended_) return;
  ::kill(pid_, SIGKILL);  // ours and not reaped: the number is still that process
  reap(pid_);
  pid_ = -1;
}

Result<std::optional<ExitStatus>> Process::tryWait() {
  if (ended_) return ended_;
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  if (found == 0) return std::optional<ExitStatus>();
  if (found < 0) return Status::fromErrno(errno, fmt::format("wait for process {}", pid_));
  ended_ =
      WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  return ended_;
}

Result<ExitStatus> Process::waitFor(Duration budget) {
  const TimePoint deadline = now() + budget;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<ExitStatus> ended, tryWait());
    if (ended) return *ended;
    const Duration left = deadline - now();
    if (left <= Duration::zero()) {
      return errorf(Code::kDeadlineExceeded, "process {} still runs after {}", pid_,
                    formatDuration(budget));
    }
    pollfd ready{pid_fd_.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(toMilliseconds(left)) + 1);
  }
}

Status Process::signal(int number) {
  if (ended_) return okStatus();
  if (::kill(pid_, number) != 0 && errno != ESRCH) {
    return Status::fromErrno(errno, fmt::format("signal process {}", pid_));
  }
  return okStatus();
}

std::string howItEnded(Process& process) {
  constexpr Duration kExitBudget = 200ms;
  const auto ended = process.waitFor(kExitBudget);
  return ended.ok() ? ended->toString() : ended.status().message();
}

}  // namespace faultline::launch

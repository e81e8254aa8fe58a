#include "harness/cli/separate_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>

#include "base/limits.h"
#include "base/unique_fd.h"
#include "harness/control/interrupt.h"

namespace faultline::cli {
namespace {

constexpr int kOverdueLookMs = 250;

/// Until it has ended: its status, as of waitpid(2).
Result<int> awaitEnd(pid_t pid, const UniqueFd& pid_fd, run::Interrupt& interrupt,
                     std::optional<TimePoint> deadline, const std::function<bool()>& overdue) {
  bool told = false;
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0) return Status::fromErrno(errno, "await the process that does it");
    pollfd ready[] = {{pid_fd.get(), POLLIN, 0}, {told ? -1 : interrupt.fd(), POLLIN, 0}};
    int patience_ms = -1;
    if (deadline) {
      const Duration left = std::max(*deadline - now(), Duration(0));
      patience_ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
      if (overdue) patience_ms = std::min(patience_ms, kOverdueLookMs);
    }
    ::poll(ready, 2, patience_ms);
    if (deadline && (now() >= *deadline || (overdue && overdue()))) {
      ::kill(pid, SIGKILL);
      deadline.reset();
    }
    if (told || !interrupt.pending()) continue;
    ::kill(pid, SIGTERM);
    told = true;
  }
}

}  // namespace

Result<std::optional<int>> goOnInSeparateProcess(std::optional<Duration> longest,
                                                 const std::function<bool()>& overdue) {
  // From here on signals wait: those that come before the new process has them in hand, too.
  ASSIGN_OR_RETURN(run::Interrupt interrupt, run::Interrupt::watch());
  std::cout << std::flush;
  std::fflush(nullptr);
  // Ignored, which may be inherited, the end of the new process would leave no exit code.
  ::signal(SIGCHLD, SIG_DFL);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return cannotStart(errno, "start a process");
  if (pid == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::raise(SIGTERM);  // it has died before that
    return std::optional<int>();
  }
  const UniqueFd pid_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pid_fd) {
    const int error = errno;
    ::kill(pid, SIGTERM);
    ::waitpid(pid, nullptr, 0);
    return callRefused(error, "pidfd_open", "watch a process");
  }
  const auto deadline = longest ? std::optional(now() + *longest) : std::nullopt;
  ASSIGN_OR_RETURN(const int status, awaitEnd(pid, pid_fd, interrupt, deadline, overdue));
  if (WIFEXITED(status)) return std::optional(WEXITSTATUS(status));
  return errorf(
      Code::kNotRestored,
      "process {}, which did it, was killed by signal {}: what it has changed may be left", pid,
      WTERMSIG(status));
}

}  // namespace faultline::cli

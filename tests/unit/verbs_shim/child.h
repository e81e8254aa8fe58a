#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {

/// How a child of this process that runs `body` ends: its exit code, or minus the signal. One that
/// does not end within some seconds is killed. No exit handler runs in it.
template <typename Body>
int inChild(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  if (!becomes([&] { return ::waitpid(pid, &status, WNOHANG) == pid; })) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace faultline::testing

#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"

/// What programs that measure over several processes have in common: whatever goes wrong ends them.
namespace faultline::bench {

/// Ends this process, without the destructors of what its parent shares with it.
[[noreturn]] inline void die(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::fflush(stdout);
  _exit(3);
}

inline void require(const Status& status) {
  if (!status.ok()) die(status.message());
}
template <typename T>
T require(Result<T> result) {
  if (!result.ok()) die(result.status().message());
  return std::move(result).value();
}

/// fork(); the child ends with this process, however that ends.
inline pid_t forkChild() {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) die("cannot fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(3);  // it has ended before that
  return pid;
}

/// Memory that this process and those that it forks have in common.
template <typename T>
std::unique_ptr<T, void (*)(T*)> share() {
  void* memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("no shared memory");
  return {new (memory) T, [](T* it) { munmap(it, sizeof(T)); }};
}

}  // namespace faultline::bench

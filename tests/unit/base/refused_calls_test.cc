#include "base/refused_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace faultline {
namespace {

/// Whether `check` holds in a process in which a system call is answered with `error`.
template <typename Check>
bool holdsWithout(long call, int error, const Check& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto number = static_cast<unsigned>(call);
    std::array<sock_filter, 4> filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    const bool set = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                     ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    ::_exit(set && check() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(RefusedCalls, HereNoneIs) {
  for (const auto calls : {callsOfRuns(), callsOfPlugin()}) {
    const Status status = checkCalls(calls);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_FALSE(isRefused("unshare"));
  EXPECT_FALSE(isRefused("setns"));
  EXPECT_FALSE(isRefused("no_such_call"));
}

TEST(RefusedCalls, ThatOfAFilterIsNamedAndNoOther) {
  const auto named = [](const char* call) {
    return [call] {
      const Status status = checkCalls(callsOfRuns());
      return !status.ok() &&
             status.message().find(std::string("around: ") + call + ";") != std::string::npos;
    };
  };
  EXPECT_TRUE(holdsWithout(SYS_clone3, EPERM, named("clone3")));
  EXPECT_TRUE(holdsWithout(SYS_epoll_create1, EPERM, named("epoll_create1")));
  EXPECT_TRUE(holdsWithout(SYS_pipe2, ENOSYS, named("pipe2")));
  EXPECT_TRUE(holdsWithout(SYS_socketpair, EPERM, named("socketpair")));
  EXPECT_TRUE(holdsWithout(SYS_fsync, EACCES, named("fsync")));
  EXPECT_TRUE(holdsWithout(SYS_eventfd2, EPERM, named("eventfd2")));
  EXPECT_TRUE(holdsWithout(SYS_accept4, EPERM, named("accept4")));
  EXPECT_TRUE(holdsWithout(SYS_pidfd_open, ENOSYS, named("pidfd_open")));
#ifdef SYS_rename
  EXPECT_TRUE(holdsWithout(SYS_rename, EPERM, named("rename")));
#endif
#ifdef SYS_poll
  EXPECT_TRUE(holdsWithout(SYS_poll, EPERM, named("poll")));
#endif
  EXPECT_TRUE(holdsWithout(SYS_setns, EPERM, [] { return isRefused("setns"); }));
  EXPECT_TRUE(holdsWithout(SYS_unshare, EPERM, [] { return isRefused("unshare"); }));
}

TEST(RefusedCalls, OneThatGlibcDoesWithoutMayBeUnknown) {
  EXPECT_TRUE(holdsWithout(SYS_clone3, ENOSYS, [] { return checkCalls(callsOfRuns()).ok(); }));
}

}  // namespace
}  // namespace faultline

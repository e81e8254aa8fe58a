#include "resilient_ccl/fabric/poller.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace faultline::fabric {
namespace {

/// From now on this process gets the error for the system call, as from a kernel without it.
bool answerWith(int error, int call) {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Whether waits end with their time, and with what they wait for.
bool waits() {
  Poller poller;
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  int called = 0;
  const bool watched =
      poller.open().ok() && poller.add(event.get(), EPOLLIN, [&](std::uint32_t) { ++called; }).ok();
  const TimePoint before = now();
  if (!watched || !poller.wait(1500us).ok() || called != 0 || now() - before < 1500us) return false;
  const std::uint64_t one = 1;
  if (write(event.get(), &one, sizeof(one)) != sizeof(one)) return false;
  return poller.wait(1h).ok() && called == 1;
}

TEST(PollerTest, WaitsForTimeAndEvents) { EXPECT_TRUE(waits()); }

// Of Linux 5.10 and older, and of containers whose filter does not know the call.
TEST(PollerTest, DoesWithoutTheFinerWait) {
  for (const int error : {ENOSYS, EPERM}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      constexpr int kNoFilter = 2;
      _exit(answerWith(error, __NR_epoll_pwait2) ? (waits() ? 0 : 1) : kNoFilter);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "error " << error;
  }
}

}  // namespace
}  // namespace faultline::fabric

#include "resilient_ccl/fabric/poller.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/refused_calls.h"

namespace faultline::fabric {
namespace {

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

/// Whether a signal ends a wait, of which nothing is ready then.
bool isInterrupted() {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  sigaction(SIGALRM, &nothing, nullptr);
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 1000},
                        .it_value = {.tv_sec = 0, .tv_usec = 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  Poller poller;
  if (!poller.open().ok()) return false;
  const Result<int> ready = poller.wait(1h);
  return ready.ok() && *ready == 0;
}

TEST(PollerTest, WaitsForTimeAndEvents) { EXPECT_TRUE(waits()); }

// Of Linux 5.10 and older, and of containers whose filter does not know the call.
TEST(PollerTest, DoesWithoutTheFinerWait) {
  for (const int error : {ENOSYS, EPERM}) {
    EXPECT_TRUE(test::worksWithout({SYS_epoll_pwait2}, error, waits)) << "error " << error;
    EXPECT_TRUE(test::worksWithout({SYS_epoll_pwait2}, error, isInterrupted)) << "error " << error;
  }
}

TEST(PollerTest, WaitsNoCoarserThanTheKernelCan) {
  (void)syscall(SYS_epoll_pwait2, -1, nullptr, 0, nullptr, nullptr, 0);
  if (errno != EINVAL && errno != EBADF) {
    GTEST_SKIP() << "no epoll_pwait2 here (Linux 5.11): " << strerror(errno);
  }
#ifdef SYS_epoll_wait
  const std::vector<long> coarse{SYS_epoll_wait, SYS_epoll_pwait};
#else
  const std::vector<long> coarse{SYS_epoll_pwait};
#endif
  EXPECT_TRUE(test::worksWithout(coarse, ENOSYS, waits)) << "in whole milliseconds";
  // Nor from then on.
  EXPECT_TRUE(test::worksWithout(coarse, ENOSYS, isInterrupted));
  EXPECT_TRUE(test::worksWithout(coarse, ENOSYS, [] {
    errno = EPERM;  // of something before
    return waits();
  }));
}

}  // namespace
}  // namespace faultline::fabric

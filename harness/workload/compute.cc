#include "harness/workload/compute.h"

#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <cstdint>

namespace faultline::workload {

namespace {

/// The kernel wakes a thread up to 50 us later than it asked for, to join wakes (prctl(2)). A GPU
/// is not late.
void wakeInTime() {
  thread_local bool asked = false;
  if (!asked) prctl(PR_SET_TIMERSLACK, 1UL);
  asked = true;
}

}  // namespace

void computeUntil(TimePoint moment, bool burn) {
  if (burn) {
    while (now() < moment) {
    }
    return;
  }
  wakeInTime();
  const auto nanoseconds = moment.time_since_epoch().count();
  constexpr std::int64_t kSecond = Duration(1s).count();
  const timespec until{nanoseconds / kSecond, nanoseconds % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace faultline::workload

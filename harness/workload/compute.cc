#include "harness/workload/compute.h"

#include <time.h>

#include <cerrno>
#include <cstdint>

namespace faultline::workload {

void computeUntil(TimePoint moment, bool burn) {
  if (burn) {
    while (now() < moment) {
    }
    return;
  }
  const auto nanoseconds = moment.time_since_epoch().count();
  constexpr std::int64_t kSecond = Duration(1s).count();
  const timespec until{nanoseconds / kSecond, nanoseconds % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace faultline::workload

#include "base/clock.h"

#include <ctime>

namespace faultline {

TimePoint MonotonicClock::now() {
  timespec stamp{};
  clock_gettime(CLOCK_MONOTONIC, &stamp);
  return TimePoint(std::chrono::seconds(stamp.tv_sec) + std::chrono::nanoseconds(stamp.tv_nsec));
}

}  // namespace faultline

#pragma once

#include <chrono>
#include <cstdint>

namespace faultline {

using Duration = std::chrono::nanoseconds;
using std::chrono::duration_cast;
using namespace std::chrono_literals;  // NOLINT: durations are written with their unit everywhere

/// The machine's monotonic clock (CLOCK_MONOTONIC), the same for every process of the machine, so
/// that stamps of ranks, injector and harness are comparable. Logic never reads it: it is handed a
/// TimePoint, so that tests can run under a simulated clock.
struct MonotonicClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

using TimePoint = MonotonicClock::time_point;

inline TimePoint now() { return MonotonicClock::now(); }

inline constexpr double kMillisecondsPerSecond = 1000;

/// A duration as floating-point milliseconds, the unit of every time in results.
inline double toMilliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// A duration as floating-point seconds.
inline double toSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline Duration fromSeconds(double seconds) {
  return duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace faultline

#pragma once

#include <poll.h>

#include "base/clock.h"

namespace faultline::test {

/// Asks again and again until `condition` holds; false when it does not within `budget`.
template <typename Condition>
bool pollUntil(Duration budget, Condition condition) {
  constexpr int kPauseMilliseconds = 1;
  const TimePoint deadline = now() + budget;
  while (!condition()) {
    if (now() >= deadline) return false;
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
  return true;
}

}  // namespace faultline::test

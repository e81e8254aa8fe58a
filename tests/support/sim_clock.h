#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/clock.h"

namespace faultline::test {

/// A simulated clock and its calendar.
class SimClock {
 public:
  TimePoint now() const { return now_; }
  void after(Duration delay, std::function<void()> action) {
    calendar_.push({now_ + delay, order_++, std::move(action)});
  }
  /// Runs the next entry; false when the calendar is empty or it is later than `until`.
  bool step(TimePoint until) {
    if (calendar_.empty() || calendar_.top().when > until) return false;
    Entry entry = calendar_.top();
    calendar_.pop();
    now_ = std::max(now_, entry.when);
    entry.action();
    return true;
  }

 private:
  struct Entry {
    TimePoint when;
    std::uint64_t order;
    std::function<void()> action;
    bool operator>(const Entry& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  TimePoint now_ = TimePoint(1s);
  std::uint64_t order_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> calendar_;
};

}  // namespace faultline::test

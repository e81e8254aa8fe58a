#pragma once

#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/periodically.h"

namespace faultline::workload {

/// Calls `tell` on a thread of its own, again and again, while the process waits for something that
/// takes long: a job that hangs has then told what it knew.
class LongWait {
 public:
  /// The first time after `every`, then as often; never outside begin() and end().
  LongWait(Duration every, std::function<void()> tell)
      : every_(every), tell_(std::move(tell)), watch_(every / 2, [this] { look(); }) {}

  void begin() {
    watch_.between([this] { due_ = now() + every_; });
  }
  /// Waits for a call that is under way; there is none afterwards.
  void end() {
    watch_.between([this] { due_ = TimePoint::max(); });
  }

 private:
  // It looks every so often instead of being woken by each begin(): those are many, and short.
  void look() {
    if (now() < due_) return;
    tell_();
    due_ = now() + every_;
  }

  const Duration every_;
  const std::function<void()> tell_;
  TimePoint due_ = TimePoint::max();  // max: nobody waits
  Periodically watch_;
};

}  // namespace faultline::workload

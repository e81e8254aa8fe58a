#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace faultline {

/// Does something again and again, on a thread of its own, until it is destroyed.
class Periodically {
 public:
  /// The first time after `pause`.
  Periodically(Duration pause, std::function<void()> work);
  /// Waits for work that is under way.
  ~Periodically();
  Periodically(const Periodically&) = delete;
  Periodically& operator=(const Periodically&) = delete;

  /// Calls `other` while no work is under way.
  template <typename Other>
  auto between(Other other) {
    const std::lock_guard lock(mutex_);
    return other();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace faultline

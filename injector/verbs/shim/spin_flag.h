#pragma once

#include <atomic>

namespace faultline::injector::verbs::shim {

/// Held for some ns, by the few threads that use one queue at once, only while a fault that holds
/// completions back is armed for it.
class SpinFlag {
 public:
  bool try_lock() { return !flag_.test_and_set(std::memory_order_acquire); }
  void lock() {
    while (!try_lock()) {
      while (flag_.test(std::memory_order_relaxed)) {
      }
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

}  // namespace faultline::injector::verbs::shim

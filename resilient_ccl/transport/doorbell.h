#pragma once

#include <atomic>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::transport {

/// Wakes a thread that sleeps in epoll and costs no system call while it is awake. The sleeper arms
/// the bell, looks once more whether there is something for it, and only then sleeps on `fd`; who
/// has something for it makes that visible first, and then rings.
class Doorbell {
 public:
  Status open();
  /// Readable when the bell has rung and nobody has called `clear`.
  int fd() const { return event_.get(); }

  // The sleeper's.
  // Each side exchanges and then looks, or changes and then exchanges: one of the two sees the
  // other.
  void arm() { armed_.exchange(true, std::memory_order_acq_rel); }
  void disarm() { armed_.store(false, std::memory_order_relaxed); }
  void clear();

  /// Any thread.
  void ring();

 private:
  UniqueFd event_;
  std::atomic<bool> armed_{false};
};

}  // namespace faultline::transport

#pragma once

#include <thread>

#include "base/unique_fd.h"

namespace faultline::launch {

/// A rank's side of what ties its life to the controller's. The parent-death signal alone would do
/// on most days; it is lost when a process changes its credentials, and it comes from the thread
/// that spawned. The pipe has neither gap: the kernel closes it whenever and however its last
/// writer, the controller, dies.
///
/// From construction on a thread waits on the pipe, and ends the whole process with kExitOrphaned,
/// at once and without clean-up, when it is closed. Destroying the object ends the watch.
class Lifeline {
 public:
  static constexpr int kExitOrphaned = 113;

  explicit Lifeline(UniqueFd pipe);
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  UniqueFd pipe_;
  UniqueFd stop_;
  std::thread watcher_;
};

}  // namespace faultline::launch

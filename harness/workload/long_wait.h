#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace faultline::workload {

/// Calls `tell` on a thread of its own, again and again, while the process waits for something that
/// takes long: a job that hangs has then told what it knew.
class LongWait {
 public:
  /// The first time after `every`, then as often. Nothing is called outside begin() and end().
  LongWait(Duration every, std::function<void()> tell);
  /// Joins the thread.
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  void begin();
  /// Waits for a call that is under way; there is none afterwards.
  void end();

 private:
  void run();

  const Duration every_;
  const std::function<void()> tell_;
  std::mutex mutex_;
  std::condition_variable changed_;
  TimePoint due_ = TimePoint::max();  // max: nobody waits
  bool over_ = false;
  std::thread thread_;
};

}  // namespace faultline::workload

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace faultline::comm {

/// A thread that does one job after the other: plans take too long for a progress thread.
class PlanWorker {
 public:
  PlanWorker() : thread_([this] { run(); }) {}
  /// Waits for the job that is under way; those behind it are not done.
  ~PlanWorker();
  PlanWorker(const PlanWorker&) = delete;
  PlanWorker& operator=(const PlanWorker&) = delete;

  /// Any thread.
  void post(std::function<void()> job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace faultline::comm

#include "harness/workload/long_wait.h"

#include <utility>

namespace faultline::workload {

LongWait::LongWait(Duration every, std::function<void()> tell)
    : every_(every), tell_(std::move(tell)), thread_([this] { run(); }) {}

LongWait::~LongWait() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LongWait::begin() {
  const std::lock_guard lock(mutex_);
  due_ = now() + every_;
}

void LongWait::end() {
  const std::lock_guard lock(mutex_);
  due_ = TimePoint::max();
}

// It looks every so often instead of being woken by each begin(): those are many, and short.
void LongWait::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, every_ / 2, [this] { return over_; })) {
    if (now() < due_) continue;
    tell_();
    due_ = now() + every_;
  }
}

}  // namespace faultline::workload

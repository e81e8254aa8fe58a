#include "base/periodically.h"

#include <utility>

namespace faultline {

Periodically::Periodically(Duration pause, std::function<void()> work)
    : thread_([this, pause, work = std::move(work)] {
        std::unique_lock lock(mutex_);
        while (!ends_.wait_for(lock, pause, [this] { return ending_; })) work();
      }) {}

Periodically::~Periodically() {
  between([this] { ending_ = true; });
  ends_.notify_one();
  thread_.join();
}

}  // namespace faultline

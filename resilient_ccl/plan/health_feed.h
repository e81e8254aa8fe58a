#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "resilient_ccl/plan/health.h"

namespace faultline::plan {

/// The health of the ports as somebody knows it who does not measure it: a scheduler that has been
/// told of a maintenance, a test. Thread-safe.
class HealthFeed {
 public:
  /// By process of the job.
  void set(HealthVector health) {
    const std::lock_guard lock(mutex_);
    health_ = std::move(health);
  }
  /// Nothing until it has been set.
  std::optional<HealthVector> get() const {
    const std::lock_guard lock(mutex_);
    return health_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<HealthVector> health_;
};

}  // namespace faultline::plan

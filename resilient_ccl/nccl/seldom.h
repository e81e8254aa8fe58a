#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace faultline::nccl {

/// Of messages that others can cause by the thousand: one for each pause. Not thread-safe.
class Seldom {
 public:
  explicit Seldom(Duration pause) : pause_(pause) {}

  /// How many messages have been left out since the last one that was said; nothing: leave this one
  /// out too.
  std::optional<std::uint64_t> say(TimePoint now) {
    if (said_ && now - *said_ < pause_) {
      ++leftOut_;
      return std::nullopt;
    }
    said_ = now;
    return std::exchange(leftOut_, 0);
  }

 private:
  const Duration pause_;
  std::optional<TimePoint> said_;
  std::uint64_t leftOut_ = 0;
};

}  // namespace faultline::nccl

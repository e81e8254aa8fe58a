#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace faultline::injector {

/// How long a counter must stand still to prove that nothing passes: long against the few packets
/// per millisecond of any job and against the way through the switch, short against faults. What
/// was queued before has drained by then.
constexpr Duration kStill = 20ms;

/// Watches a counter that should stand still, and tells since when it has. Pure.
class StillWatch {
 public:
  void observe(std::uint64_t value, TimePoint now) {
    if (!value_ || *value_ != value) since_ = now;
    value_ = value;
    last_ = now;
  }
  /// How long the counter has been seen without a change.
  Duration stillFor() const { return value_ ? last_ - since_ : Duration::zero(); }
  std::uint64_t value() const { return value_.value_or(0); }

 private:
  std::optional<std::uint64_t> value_;
  TimePoint since_{};
  TimePoint last_{};
};

}  // namespace faultline::injector

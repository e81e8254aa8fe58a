#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace faultline::injector {

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

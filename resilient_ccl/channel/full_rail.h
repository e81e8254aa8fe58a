#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"

namespace faultline::channel {

/// Whether a rail has had so much to carry, for so long, that what it carries is all it can. Pure.
class FullRail {
 public:
  /// How much longer a rail must have been full than not, before its rate is told.
  static constexpr Duration kProof = 50ms;
  /// What is told again only if it differs by more than this share.
  static constexpr double kWorthwhile = 0.1;

  /// `full`: at least half of the rail's window is outstanding. To be called when that may have
  /// changed. Returns `rate` (bytes/s), what the rail has carried lately, when it is to be told.
  std::optional<double> observe(bool full, double rate, TimePoint now) {
    const Duration since = now - observed_;
    observed_ = now;
    balance_ = std::clamp(balance_ + (full_ ? since : -since), Duration::zero(), kProof);
    full_ = full;
    if (balance_ < kProof || !full) return std::nullopt;
    if (std::abs(rate - told_) <= kWorthwhile * told_) return std::nullopt;
    told_ = rate;
    return rate;
  }

 private:
  bool full_ = false;
  TimePoint observed_{};
  Duration balance_{};
  double told_ = 0;
};

}  // namespace faultline::channel

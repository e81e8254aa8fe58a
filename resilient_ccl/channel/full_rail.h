#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"

namespace faultline::channel {

/// The most that a rail has carried lately while it had much to carry. Pure.
///
/// The most, as a rail that is full may carry less than it can: the acknowledgements of what it has
/// sent may wait behind what its neighbour sends. Told that as its rate, the transport would hold
/// it down to that.
class FullRail {
 public:
  /// How long a rail must have been full, less a quarter of the time in which it was not.
  static constexpr Duration kProof = 50ms;
  /// For so long at least, and at most twice as long, a rate is remembered.
  static constexpr Duration kMemory = 1s;
  /// What is told again only if it differs by more than this share.
  static constexpr double kWorthwhile = 0.1;

  /// `full`: at least half of the rail's window is outstanding. To be called when that may have
  /// changed, with what the rail carries (bytes/s). Returns a rate when it is to be told.
  std::optional<double> observe(bool full, double rate, TimePoint now) {
    const Duration since = now - observed_;
    observed_ = now;
    fullFor_ = std::clamp(fullFor_ + (full_ ? since : -since / 4), Duration::zero(), kProof);
    full_ = full;
    if (fullFor_ < kProof || !full) return std::nullopt;
    if (now - begun_ > kMemory) {
      before_ = lately_;
      lately_ = 0;
      begun_ = now;
    }
    lately_ = std::max(lately_, rate);
    const double most = std::max(before_, lately_);
    if (std::abs(most - told_) <= kWorthwhile * told_) return std::nullopt;
    told_ = most;
    return most;
  }

 private:
  bool full_ = false;
  TimePoint observed_{};
  Duration fullFor_{};
  TimePoint begun_{};
  double lately_ = 0;
  double before_ = 0;
  double told_ = 0;
};

}  // namespace faultline::channel

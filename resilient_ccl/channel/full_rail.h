#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
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
  static constexpr double kNotKnown = std::numeric_limits<double>::infinity();
  /// How long a rail must have been full, less a quarter of the time in which it was not.
  static constexpr Duration kProof = 50ms;
  /// For so long a rate is remembered, and up to twice as long while the rail stays full.
  static constexpr Duration kMemory = 1s;
  /// Of a rail on which nothing is acknowledged for so long it is not known what it carries.
  static constexpr Duration kSilence = 10ms;
  /// What is told again only if it differs by more than this share.
  static constexpr double kWorthwhile = 0.1;

  /// `full`: at least half of the rail's window is outstanding. To be called when that may have
  /// changed, with what the rail carries (bytes/s) and when that was measured. Returns what is to
  /// be told: a rate, or kNotKnown after one.
  std::optional<double> observe(bool full, double rate, TimePoint measured, TimePoint now) {
    const Duration since = now - observed_;
    observed_ = now;
    const bool silent = full_ && (since > kSilence || now - measured > kSilence);
    fullFor_ = silent
                   ? Duration::zero()
                   : std::clamp(fullFor_ + (full_ ? since : -since / 4), Duration::zero(), kProof);
    full_ = full;
    if (!full || fullFor_ < kProof) return now - proven_ > kMemory ? tell(kNotKnown) : std::nullopt;
    if (now - proven_ > kMemory) lately_ = 0;
    proven_ = now;
    if (now - begun_ > kMemory) {
      before_ = lately_;
      lately_ = 0;
      begun_ = now;
    }
    lately_ = std::max(lately_, rate);
    return tell(std::max(before_, lately_));
  }

 private:
  std::optional<double> tell(double rate) {
    const bool comparable = told_ != kNotKnown && rate != kNotKnown;
    if (comparable ? std::abs(rate - told_) <= kWorthwhile * told_ : rate == told_) {
      return std::nullopt;
    }
    told_ = rate;
    return rate;
  }

  bool full_ = false;
  TimePoint observed_{};
  Duration fullFor_{};
  TimePoint proven_{};  ///< when it was last seen to be full for long
  TimePoint begun_{};   ///< of the time whose most is lately_
  double lately_ = 0;
  double before_ = 0;
  double told_ = kNotKnown;
};

}  // namespace faultline::channel

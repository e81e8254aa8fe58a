#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/units.h"

namespace faultline::channel {

/// What a rail carries, in bytes per second: what the other application has acknowledged over the
/// time in which something was outstanding. Older observations fade, and idleness alone changes
/// nothing. Pure; times are handed in.
class RateEstimate {
 public:
  /// Time after which an observation weighs 1/e: some windows, so that a change is followed within
  /// tens of milliseconds and one late acknowledgement is not taken for a change.
  static constexpr Duration kMemory = 20ms;
  /// Weight, as busy time, of the first guess and of what was observed before a long idle time.
  static constexpr Duration kLeastWeight = 2ms;

  /// Begins with a guess that the first acknowledgements outweigh.
  explicit RateEstimate(double bytesPerSecond)
      : bytes_(bytesPerSecond * toSeconds(kLeastWeight)), seconds_(toSeconds(kLeastWeight)) {}

  /// Something is outstanding from now on, after nothing was.
  void begin(TimePoint now);

  /// `bytes` of what is outstanding have been acknowledged.
  void acknowledged(Bytes bytes, TimePoint now);

  /// As of the last acknowledgement. Never below 1, so that times can be computed from it.
  double bytesPerSecond() const { return std::max(1.0, bytes_ / seconds_); }

  /// While something is outstanding: if nothing had been acknowledged until `until`. Not above
  /// bytesPerSecond().
  double withSilenceUntil(TimePoint until) const;

  /// When it was last measured; the epoch of the clock: never.
  TimePoint measured() const { return measured_; }

 private:
  double bytes_;
  double seconds_;
  TimePoint since_{};
  TimePoint measured_{};
};

}  // namespace faultline::channel

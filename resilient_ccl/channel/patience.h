#pragma once

#include <algorithm>

#include "base/clock.h"

namespace faultline::channel {

/// How long a rail may be silent before it is suspected: longer than its acknowledgements usually
/// let one wait. Where many connections share a slow port that is as long as the port's queue, and
/// to ask after each of them would take a good part of the port. The estimate is that of a
/// retransmission timer (RFC 6298): the mean of the gaps and four times their deviation. Pure.
class Patience {
 public:
  /// Never longer than so many times the least: that is what an outage costs at worst.
  static constexpr int kMost = 10;

  /// Something was acknowledged, so long after what came before it or, when nothing had been
  /// outstanding, after the sending. An outage is no habit: it counts as twice the patience at
  /// most.
  void heardAfter(Duration gap, Duration least) {
    gap = std::min(gap, 2 * suspectAfter(least));
    const Duration error = std::max(gap - mean_, mean_ - gap);
    deviation_ += (error - deviation_) / 4;
    mean_ += (gap - mean_) / 8;
  }

  Duration suspectAfter(Duration least) const {
    return std::clamp(mean_ + 4 * deviation_, least, kMost * least);
  }

 private:
  Duration mean_{};
  Duration deviation_{};
};

}  // namespace faultline::channel

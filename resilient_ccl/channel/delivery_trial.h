#pragma once

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "resilient_ccl/transport/rail.h"

namespace faultline::channel {

/// What the transport of a suspected rail delivers while the rail is tried. The trial goes on when
/// it was something: what had come in before an outage is acknowledged when the path is back, and
/// the rest may wait all the same. Pure.
class DeliveryTrial {
 public:
  /// What had come in before an outage is acknowledged when the path is back, all at once: one
  /// move. With another one, later than a round trip, the transport delivers, and may just be
  /// slower than ever: then late is what its own estimate calls late, without the least time of its
  /// timer and without its back-off (RFC 6298).
  static constexpr int kMovesThatDeliver = 2;

  void begin(const transport::Delivery& delivery) {
    seen_ = expected_ = delivery;
    moves_ = 0;
  }

  /// As it is now; whether the other machine has acknowledged more than when it was looked at last.
  bool look(const transport::Delivery& delivery, TimePoint now) {
    const transport::Delivery before = std::exchange(seen_, delivery);
    if (seen_.acknowledged == before.acknowledged) return false;
    if (moves_ == 0 || now - moved_ > expected_.roundTrip) ++moves_;
    moved_ = now;
    // The one from before, as it is the outage that a late acknowledgement measures.
    expected_ = before;
    return true;
  }

  /// Something has been sent and not been acknowledged.
  bool outstanding() const { return seen_.outstanding; }

  /// Or would have been, had the port of this machine taken it.
  bool offered() const { return seen_.outstanding || seen_.refused; }

  /// Nothing was acknowledged for longer than it should take, by the transport or, since
  /// `lastProgress`, by the peer.
  bool quiet(TimePoint lastProgress, TimePoint now) const {
    return now - std::max(lastProgress, moved_) > lateAfter();
  }

  /// Nothing was for so many of the longest round trips that are usual.
  bool quietFor(int roundTrips, TimePoint lastProgress, TimePoint now) const {
    const Duration longest = expected_.roundTrip + kDeviations * expected_.variation;
    return now - std::max(lastProgress, moved_) > roundTrips * longest;
  }

  /// The transport's Delivery::frame.
  Bytes frame() const { return seen_.frame; }

 private:
  static constexpr int kDeviations = 4;

  Duration lateAfter() const {
    return moves_ < kMovesThatDeliver ? expected_.roundTrip
                                      : expected_.roundTrip + kDeviations * expected_.variation;
  }

  transport::Delivery seen_;
  transport::Delivery expected_;  // as it was before the latest move
  TimePoint moved_{};
  int moves_ = 0;
};

}  // namespace faultline::channel

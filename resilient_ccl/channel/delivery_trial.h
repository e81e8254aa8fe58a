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
  void begin(const transport::Delivery& delivery) {
    seen_ = delivery;
    roundTrip_ = delivery.roundTrip;
  }

  /// As it is now; whether the other machine has acknowledged more than when it was looked at last.
  bool look(const transport::Delivery& delivery, TimePoint now) {
    const transport::Delivery before = std::exchange(seen_, delivery);
    if (seen_.acknowledged == before.acknowledged) return false;
    moved_ = now;
    // The one from before, as it is the outage that a late acknowledgement measures.
    roundTrip_ = before.roundTrip;
    return true;
  }

  /// Something has been sent and not been acknowledged.
  bool outstanding() const { return seen_.outstanding; }

  /// Nothing was acknowledged for longer than a round trip, by the transport or, since
  /// `lastProgress`, by the peer.
  bool quiet(TimePoint lastProgress, TimePoint now) const {
    return now - std::max(lastProgress, moved_) > roundTrip_;
  }

 private:
  transport::Delivery seen_;
  TimePoint moved_{};
  Duration roundTrip_{};
};

}  // namespace faultline::channel

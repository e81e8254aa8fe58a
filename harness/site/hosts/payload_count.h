#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace faultline::hosts {

/// Tells payload from what quiet hosts send each other, by the speed alone: what rails have carried
/// between two looks counts when it is more than ARP, neighbours of IPv6, and connections that try
/// again would be. A job that is slower than that, 1 Mbit/s or so, is taken for one that hangs.
/// Pure.
class PayloadCount {
 public:
  /// `received`: what all rails have received until then. Returns what of it is payload, since the
  /// first call.
  std::uint64_t add(TimePoint when, std::uint64_t received);

 private:
  struct Look {
    TimePoint when;
    std::uint64_t received;
  };
  std::optional<Look> last_;
  std::uint64_t payload_ = 0;
};

}  // namespace faultline::hosts

#pragma once

#include <cstdint>

#include "resilient_ccl/channel/arrivals.h"

namespace faultline::channel {

/// Datagrams that a path carries, in both directions, and whether it was interrupted lately. Pure.
struct PathTraffic {
  std::uint64_t sent = 0;
  Arrivals arrivals;
  std::uint32_t gapsThere = 0;   ///< as the other end says
  std::uint32_t gapsBefore = 0;  ///< what is forgotten

  /// What is missing by now is forgotten.
  void forgetGaps() { gapsBefore = arrivals.possibleGaps() + gapsThere; }
  /// Datagrams got lost since.
  bool interrupted() const { return arrivals.gaps() + gapsThere > gapsBefore; }
};

}  // namespace faultline::channel

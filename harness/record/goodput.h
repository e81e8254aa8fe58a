#pragma once

#include "base/clock.h"
#include "base/units.h"

namespace faultline::run {

/// TCP's share of the rate that the qdisc counts as frames: 1448 / 1514 bytes.
inline constexpr double kGoodputShare = 0.957;

/// Payload that so many rails of this rate carry in one direction, in bytes per millisecond.
inline double payloadPerMs(BitsPerSecond rate, int rails) {
  constexpr double kBitsPerByte = 8;
  return static_cast<double>(rate) * kGoodputShare * rails / kBitsPerByte / kMillisecondsPerSecond;
}

}  // namespace faultline::run

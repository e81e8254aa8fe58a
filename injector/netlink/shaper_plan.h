#pragma once

#include <cstdint>

#include "base/units.h"

/// The arithmetic of a shaped port, apart from the kernel.
namespace faultline::netlink {

/// What is written into an htb class.
struct ClassPlan {
  BitsPerSecond rate = 0;
  Bytes burst = 0;  ///< what an idle class may send at once, above its rate
};

/// A port: a bulk class of the port's rate with a bounded queue, and a small control class that
/// overtakes it, as fabrics give control a traffic class of its own: otherwise a probe waits behind
/// bulk data for hundreds of milliseconds and a slow but living link looks dead.
struct ShaperPlan {
  ClassPlan bulk;
  Bytes bulk_queue = 0;  ///< what is above is dropped
  ClassPlan control;
};

/// IP type of service ("low delay" of RFC 1349) of what goes through the control class. A property
/// of the shaped network, handed to whoever sends control messages there; the two ECN bits are not
/// looked at.
inline constexpr std::uint8_t kControlTos = 0x10;

/// For a port of `rate`. To throttle it, only its bulk class is changed: control stays as it was.
ShaperPlan planShaper(BitsPerSecond rate);

/// The time to send `burst` at `rate`, in the kernel's unit for it (64 ns).
std::uint32_t burstTicks(const ClassPlan& plan);

}  // namespace faultline::netlink

#pragma once

#include <string>

#include "base/unique_fd.h"

namespace faultline::fabric {

/// Looks at a network port itself, where its events may come late: Linux holds those of a lost
/// carrier back for up to a second where it takes the port for a physical one, and while a port is
/// being closed its last event comes after the last frame by as long as the kernel's lock is held.
/// What is read here needs no lock that waits: SIOCGIFFLAGS (the port's flags, under RCU) and
/// carrier_down_count and carrier_up_count in sysfs (counted where the driver says it, since Linux
/// 4.16). Not `carrier` in sysfs, ethtool or RTM_GETLINK: these take the lock. Not thread-safe.
class PortSight {
 public:
  PortSight() = default;
  /// The port of the namespace that the calling thread is in. Where sysfs shows another namespace,
  /// its own is mounted, out of everybody's sight; where that is not allowed, only flags are seen.
  explicit PortSight(std::string device);

  /// Whether the port is switched off, has lost its carrier or is gone; false where it cannot be
  /// told.
  bool lost() const;
  /// The port works, says the kernel: what is counted from now on is lost.
  void works();
  /// Whether the carrier is seen as well as the flags.
  bool seesCarrier() const { return downs_ && ups_; }

 private:
  std::string device_;
  UniqueFd socket_;
  UniqueFd downs_, ups_;
  long lossesWhileUp_ = 0;  // losses less returns, while the port works
};

}  // namespace faultline::fabric

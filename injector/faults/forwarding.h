#pragma once

#include "base/status.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// Whether the switch forwards from and to the link's port (the bridge port's state), shared by
/// blackhole and path_flap. The carrier stays as it is.
class Forwarding {
 public:
  explicit Forwarding(const netlink::LinkTarget& target) : end_(target.attachment) {}

  static constexpr const char* kMechanism =
      "netlink: the switch's bridge port is set to the state disabled";

  /// kUnavailable when it does not forward now. Changes nothing.
  Status prepare();
  Status stop();
  /// A port that is down takes no state: it forwards by itself when it comes up.
  Status resume();
  /// kInternal when a port that is up does not forward.
  Status checkResumed();

 private:
  netlink::LinkEnd end_;
};

}  // namespace faultline::injector

#pragma once

#include "injector/faults/probe_round.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// Probe frames across a link in both directions: from the NIC to the other ports of its switch
/// ("out"), and from the switch to the NIC ("in"). Listening costs every frame of the job a little,
/// so it is opened no sooner than it is needed; closing waits for the kernel, some 10 ms per
/// socket, so it is kept and restarted while time is measured.
class CrossingProbe {
 public:
  /// kUnsupported when the switch has no other port, or is no bridge; kUnavailable when it does not
  /// forward now. Changes nothing. `payload` is what each frame has behind its Ethernet header.
  static Result<CrossingProbe> open(const netlink::LinkTarget& target,
                                    int frames = ProbeRound::kFewFrames,
                                    std::size_t payload = ProbeRound::kSmallestPayload);

  /// Checks that frames cross now, in both directions: otherwise their absence later proves
  /// nothing. kUnavailable when they do not. Takes some 100 ms. `payload` as of open().
  static Status requireWhole(const netlink::LinkTarget& target,
                             std::size_t payload = ProbeRound::kSmallestPayload);

  Status restart();
  Status step();

  bool allSent() const { return out_.allSent() && in_.allSent(); }
  /// In each direction.
  int sent() const { return out_.sent(); }
  /// Frames of the NIC that have left the switch by another port.
  int out() const { return out_.passedMost(kOthers); }
  /// Frames of the NIC that have arrived at the switch's port.
  int arrived() const { return out_.passed(kThisPort); }
  /// Frames of the switch that have left by the NIC's port.
  int in() const { return in_.passed(kThisPort); }
  /// Frames of the switch that have left by another port: proof that they were under way.
  int control() const { return in_.passed(kControlPort); }

 private:
  static constexpr std::size_t kThisPort = 0;
  static constexpr std::size_t kControlPort = 1;
  static constexpr std::size_t kOthers = 1;
  CrossingProbe(ProbeRound out, ProbeRound in) : out_(std::move(out)), in_(std::move(in)) {}

  ProbeRound out_;
  ProbeRound in_;
};

}  // namespace faultline::injector

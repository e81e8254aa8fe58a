#include "injector/faults/crossing_probe.h"

#include <poll.h>

#include "base/clock.h"
#include "injector/fault.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

// A broadcast leaves by all other ports alike: a few tell as much as all.
constexpr std::size_t kMostListeners = 3;
// Where foreign shapers are on the way, their queues may hold bulk data.
constexpr Duration kCrossingBudget = 500ms;

}  // namespace

Result<CrossingProbe> CrossingProbe::open(const netlink::LinkTarget& target, int frames,
                                          std::size_t payload) {
  if (target.siblings.empty()) {
    return errorf(Code::kUnsupported,
                  "the switch has no other port, so there is nobody to be cut off from");
  }
  netlink::Socket& switch_socket = *target.attachment.socket;
  ASSIGN_OR_RETURN(const netlink::NetDevice port,
                   netlink::readNetDevice(switch_socket, target.attachment.ifindex));
  if (port.bridge_port_state < 0) {
    return errorf(Code::kUnsupported, "{} is not a port of a bridge", port.name);
  }
  std::vector<int> others = target.siblings;
  if (others.size() > kMostListeners) others.resize(kMostListeners);
  others.insert(others.begin() + kThisPort, target.attachment.ifindex);
  ASSIGN_OR_RETURN(ProbeRound out,
                   ProbeRound::open(target.nic, switch_socket, others, frames, payload));
  ASSIGN_OR_RETURN(
      ProbeRound in,
      ProbeRound::open({&switch_socket, port.bridge_ifindex}, switch_socket,
                       {target.attachment.ifindex, target.siblings.front()}, frames, payload));
  return CrossingProbe(std::move(out), std::move(in));
}

Status CrossingProbe::requireWhole(const netlink::LinkTarget& target, std::size_t payload) {
  ASSIGN_OR_RETURN(CrossingProbe probe, open(target, ProbeRound::kFewFrames, payload));
  const TimePoint deadline = now() + kCrossingBudget;
  while (true) {
    RETURN_IF_ERROR(probe.step());
    if (probe.out_.passesEverywhere() && probe.in_.passesEverywhere()) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kUnavailable, "probes do not cross the link even now");
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

Status CrossingProbe::restart() {
  RETURN_IF_ERROR(out_.restart());
  return in_.restart();
}

Status CrossingProbe::step() {
  RETURN_IF_ERROR(out_.step());
  return in_.step();
}

}  // namespace faultline::injector

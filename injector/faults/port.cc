#include "injector/faults/port.h"

#include <poll.h>

#include "base/clock.h"
#include "injector/fault.h"

namespace faultline::injector {
namespace {

// The kernel tells the bridge of a carrier through a work queue, which it may hold back for up to a
// second.
constexpr Duration kReturnBudget = 2s;

}  // namespace

Port::Port(const netlink::LinkTarget& target, const std::string& how)
    : target_(target), admin_(how == "admin") {}

Status Port::prepare() {
  ASSIGN_OR_RETURN(const std::string wrong, whatIsWrong());
  if (!wrong.empty()) {
    return errorf(Code::kUnavailable, "the port does not work even now: {}", wrong);
  }
  ASSIGN_OR_RETURN(configuration_,
                   netlink::InterfaceConfiguration::read(*target_.nic.socket, target_.nic.ifindex));
  return okStatus();
}

Status Port::down() { return netlink::setUp(*ownEnd().socket, ownEnd().ifindex, false); }

Status Port::up() {
  RETURN_IF_ERROR(netlink::setUp(*ownEnd().socket, ownEnd().ifindex, true));
  return admin_ ? configuration_.restore(*target_.nic.socket) : okStatus();
}

Status Port::awaitWhole() {
  const TimePoint deadline = now() + kReturnBudget;
  while (true) {
    ASSIGN_OR_RETURN(std::string wrong, whatIsWrong());
    if (wrong.empty()) {
      // What goes with the carrier is put back here, and what the kernel has changed once more when
      // it drew the consequences of the carrier's return.
      const Status restored = configuration_.restore(*target_.nic.socket);
      if (restored.ok()) return okStatus();
      wrong = restored.message();
    }
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "the port did not come back: {}", wrong);
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

Result<std::string> Port::whatIsWrong() {
  ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                   netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
  ASSIGN_OR_RETURN(const netlink::NetDevice attachment,
                   netlink::readNetDevice(*target_.attachment.socket, target_.attachment.ifindex));
  if (!nic.admin_up) return std::string("the NIC is switched off");
  if (!attachment.admin_up) return std::string("the switch's port is switched off");
  if (!nic.carrier || !attachment.carrier) return std::string("no carrier");
  const int forwarding = static_cast<int>(netlink::BridgePortState::kForwarding);
  if (attachment.bridge_port_state >= 0 && attachment.bridge_port_state != forwarding) {
    return fmt::format("the switch does not forward (bridge port state {})",
                       attachment.bridge_port_state);
  }
  if (!netlink::isOperational(nic) || !netlink::isOperational(attachment)) {
    return std::string("the link has a carrier but is not operational yet");
  }
  return std::string();
}

}  // namespace faultline::injector

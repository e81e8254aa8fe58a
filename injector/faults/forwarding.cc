#include "injector/faults/forwarding.h"

#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

using netlink::BridgePortState;
constexpr int kForwarding = static_cast<int>(BridgePortState::kForwarding);

}  // namespace

Status Forwarding::prepare() {
  ASSIGN_OR_RETURN(const netlink::NetDevice port,
                   netlink::readNetDevice(*end_.socket, end_.ifindex));
  if (port.bridge_port_state < 0 || port.bridge_port_state == kForwarding) return okStatus();
  return errorf(Code::kUnavailable, "{} does not forward even now", port.name);
}

Status Forwarding::stop() {
  return netlink::setBridgePortState(*end_.socket, end_.ifindex, BridgePortState::kDisabled);
}

Status Forwarding::resume() {
  const Status status =
      netlink::setBridgePortState(*end_.socket, end_.ifindex, BridgePortState::kForwarding);
  return status.code() == Code::kUnavailable ? okStatus() : status;
}

Status Forwarding::checkResumed() {
  ASSIGN_OR_RETURN(const netlink::NetDevice port,
                   netlink::readNetDevice(*end_.socket, end_.ifindex));
  if (!port.admin_up || !port.carrier || port.bridge_port_state == kForwarding) return okStatus();
  return errorf(Code::kInternal, "{} is in state {} after reverting", port.name,
                port.bridge_port_state);
}

}  // namespace faultline::injector

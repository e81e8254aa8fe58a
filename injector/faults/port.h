#pragma once

#include <array>
#include <string>
#include <string_view>

#include "injector/netlink/interface.h"
#include "injector/netlink/interface_configuration.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// The parameter `how` of faults of a port.
inline constexpr std::array<std::string_view, 2> kHow{"carrier", "admin"};
inline constexpr std::string_view kHowMeaning =
    "carrier: the switch's side goes down, as a pulled cable; the node's NIC loses its carrier and "
    "keeps addresses and routes. admin: the node's NIC is switched off, which also drops its "
    "routes";

/// One of the two ways to take a port down, shared by port_down and port_flap.
class Port {
 public:
  /// `how` is "carrier" (the switch's end goes down: the NIC loses its carrier and keeps its
  /// configuration) or "admin" (the NIC itself is switched off).
  Port(const netlink::LinkTarget& target, const std::string& how);

  /// Notes the configuration; kUnavailable when the port does not work now.
  Status prepare();

  Status down();

  /// Sets it up again and, when it was switched off, puts back what the kernel has dropped.
  Status up();

  /// Waits until both ends have their carrier, the switch forwards, and the NIC's configuration is
  /// whole; kDeadlineExceeded when that does not happen.
  Status awaitWhole();

  /// The end that was not touched: what it sees is evidence.
  const netlink::LinkEnd& otherEnd() const { return admin_ ? target_.attachment : target_.nic; }
  std::string mechanism() const {
    return admin_ ? "netlink: the NIC is set down" : "netlink: the switch's port is set down";
  }
  std::string otherEndName() const { return admin_ ? "the switch's port" : "the NIC"; }

 private:
  const netlink::LinkEnd& ownEnd() const { return admin_ ? target_.nic : target_.attachment; }
  Result<std::string> whatIsWrong();

  netlink::LinkTarget target_;
  bool admin_;
  netlink::InterfaceConfiguration configuration_;
};

}  // namespace faultline::injector

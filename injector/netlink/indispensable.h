#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/needed_peers.h"
#include "injector/netlink/socket.h"

/// Which interfaces nobody should take down, or slow down, by hand: those without which the machine
/// cannot be reached, or used.
namespace faultline::netlink {

/// The interface itself and all that sit on it, at any height: the bridge, bond or VRF of which it
/// is a member (IFLA_MASTER), VLANs and macvlans on it (IFLA_LINK), and the other end of a veth.
/// Only what is in the same namespace. Pure.
std::set<int> interfacesOver(const std::vector<NetDevice>& links, int ifindex);

/// Why the interface is needed: over it, one that sits on it, or one of its members, leads a
/// default route of IPv4 or IPv6 (also one in parts, or by nexthop objects), or the way to one of
/// the peers from this end's address. A default route of a table that rules choose for some sources
/// only, as each NIC of a routed fabric has one, is not meant. Like "carries a default route by way
/// of br0: ...", with what to do; nothing when it is not. All of that in the namespace of `socket`:
/// where it has no route to a peer, that peer is not met there.
Result<std::optional<std::string>> whyIndispensable(Socket& socket, int ifindex,
                                                    const std::vector<NeededPeer>& peers);

}  // namespace faultline::netlink

#pragma once

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Whether a default route of IPv4 or IPv6 leads over the interface: then the way to this machine
/// most likely does as well, and nobody should break it by hand.
Result<bool> carriesDefaultRoute(Socket& socket, int ifindex);

}  // namespace faultline::netlink

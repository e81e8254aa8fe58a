#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// net.ipv6.conf.<interface>.mtu in bytes, where it is not the MTU of the link, to which the kernel
/// sets it whenever the interface or its carrier comes up; nothing where there is no IPv6.
Result<std::optional<std::uint32_t>> readOwnIpv6Mtu(Socket& socket, int ifindex);

/// Sets it, in the namespace of the socket. kInvalidArgument when it is more than the link's.
Status setIpv6Mtu(Socket& socket, int ifindex, std::uint32_t mtu);

}  // namespace faultline::netlink

#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace faultline::fabric {

/// What this process's network namespace would do with a packet.
enum class Route : std::uint8_t {
  kNone,     ///< no rule leads to a table with a route for it, or that one forbids it
  kLeaves,   ///< it is sent
  kRemains,  ///< its destination is this node itself
};

/// Asks the kernel (RTM_GETROUTE) for the route of a packet from `from` to `to` (IPv4, host byte
/// order) that leaves through `device`; empty: through any. A socket that is bound to a device
/// sends without a route, too, as if the destination were on the device's own network: here that is
/// kNone. kIo: the kernel does not say, as for an address that no interface has now.
Result<Route> lookUpRoute(std::uint32_t from, std::uint32_t to, const std::string& device);

/// "this node has no route from 10.0.0.1 to 10.0.2.1 over eth0 ...", with the cure; empty: it has
/// one, or that cannot be told.
std::string missingRoute(std::uint32_t from, std::uint32_t to, const std::string& device);

}  // namespace faultline::fabric

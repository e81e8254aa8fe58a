#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "injector/netlink/socket.h"
#include "injector/safety/target.h"

namespace faultline::safety {

/// Whom a strike hits on this machine, as far as the kernel tells.
struct BlastRadius {
  std::vector<std::string> addresses;   ///< of IPv4
  std::vector<std::string> interfaces;  ///< that sit on the target, in its namespace
  int connections = 0;                  ///< of TCP over IPv4, that end at one of the addresses
};

Result<BlastRadius> blastRadius(netlink::Socket& socket, const Target& target);

std::string inWords(const BlastRadius& radius, const Target& target);

}  // namespace faultline::safety

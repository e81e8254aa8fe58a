#pragma once

#include <cstdint>
#include <string>

#include "resilient_ccl/channel/link_io.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::fabric {

/// The two ends of a path, as a message names them.
struct PathEnds {
  std::string path;        ///< "rail 1 (eth1) to node1", "the management network to node1"
  std::string device;      ///< of this end; empty: not bound to one
  std::uint32_t from = 0;  ///< IPv4 address, host byte order
  transport::tcp::Endpoint to;
  std::string noRoute{};  ///< `missingRoute` of these; empty: there is one
};

/// What a path that carries no datagrams means, what was tried, and where to look; or that it
/// carries some at last. Pure.
std::string wordsOf(const PathEnds& ends, const channel::PathProved& proved);

}  // namespace faultline::fabric

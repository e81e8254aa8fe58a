#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// One question or order of ethtool (SIOCETHTOOL) to an interface of the socket's namespace;
/// `command` is a struct ethtool_..., which has its answer afterwards. kUnsupported when the
/// interface does not know it.
Status callEthtool(Socket& socket, std::string_view interface, void* command,
                   std::string_view attempt);

/// What stays with an adapter, whatever its interface is called.
struct Adapter {
  std::string bus;           ///< "0000:17:00.0" for what is on PCI; empty: a virtual interface
  std::string permanentMac;  ///< "02:00:00:00:00:01"; empty: it has none
};
/// What the driver does not tell stays empty.
Result<Adapter> readAdapter(Socket& socket, std::string_view interface);

}  // namespace faultline::netlink

#include "injector/safety/blast_radius.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "injector/netlink/address.h"
#include "injector/netlink/indispensable.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/tcp_connections.h"

namespace faultline::safety {

Result<BlastRadius> blastRadius(netlink::Socket& socket, const Target& target) {
  BlastRadius radius;
  ASSIGN_OR_RETURN(const auto links, netlink::listNetDevices(socket));
  std::vector<std::uint32_t> own;
  for (const int ifindex : netlink::interfacesOver(links, target.ifindex)) {
    ASSIGN_OR_RETURN(const auto addresses, netlink::listAddresses(socket, ifindex));
    for (const netlink::Ipv4Address& address : addresses) {
      own.push_back(address.binary);
      radius.addresses.push_back(address.toString());
    }
    const auto link = std::ranges::find(links, ifindex, &netlink::NetDevice::ifindex);
    if (ifindex != target.ifindex && link != links.end()) radius.interfaces.push_back(link->name);
  }
  auto connections = netlink::TcpConnections::open(socket.namespaceFd());
  if (connections.status().code() == Code::kUnsupported) return radius;
  if (!connections.ok()) return connections.status();
  ASSIGN_OR_RETURN(const auto present, connections->list());
  for (const netlink::TcpConnection& one : present) {
    if (std::ranges::count(own, one.ends.from_address) > 0) ++radius.connections;
  }
  return radius;
}

std::string inWords(const BlastRadius& radius, const Target& target) {
  return fmt::format(
      "{}{}, with {}; {} TCP connections of this machine end there", nameOf(target),
      radius.interfaces.empty()
          ? ""
          : fmt::format(" and what sits on it ({})", fmt::join(radius.interfaces, ", ")),
      radius.addresses.empty() ? "no IPv4 address"
                               : fmt::format("{}", fmt::join(radius.addresses, ", ")),
      radius.connections);
}

}  // namespace faultline::safety

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Gives the interface an IPv4 address, e.g. "10.1.0.3" with 16.
Status addAddress(Socket& socket, int ifindex, std::string_view address, int prefix_length);

/// An IPv4 address of an interface; `binary` in network byte order.
struct Ipv4Address {
  std::uint32_t binary = 0;
  int prefix_length = 0;
  /// "10.1.0.3".
  std::string toString() const;
  bool operator==(const Ipv4Address&) const = default;
};

/// Its IPv4 addresses, the first one first.
Result<std::vector<Ipv4Address>> listAddresses(Socket& socket, int ifindex);

/// kUnavailable when the interface does not have it.
Status removeAddress(Socket& socket, int ifindex, const Ipv4Address& address);

/// How the interface asks for the link addresses of its neighbours (ARP): again every `pause` until
/// there is an answer, and given up, with an error for what waits, after `patience`.
struct AddressQuestions {
  Duration pause;
  Duration patience;
};
Status setAddressQuestions(Socket& socket, int ifindex, const AddressQuestions& questions);

/// Makes the interface know the link address of a neighbour, e.g. "10.1.0.3", as long as it is up:
/// nobody is asked for it, and it does not count against the kernel's limit of learned neighbours.
Status addNeighbour(Socket& socket, int ifindex, std::string_view address, const MacAddress& mac);

}  // namespace faultline::netlink

#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/packet_socket.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Who has an address, as told by ARP.
struct ArpAnswer {
  std::uint32_t address = 0;  ///< network byte order
  MacAddress mac{};
};

/// Asks on one interface who has an IPv4 address. The question comes from no address (an ARP probe
/// of RFC 5227), so that nobody's table of neighbours changes.
class ArpProbe {
 public:
  /// Needs CAP_NET_RAW. The interface needs no address.
  static Result<ArpProbe> open(Socket& socket, int ifindex);

  Status ask(std::uint32_t address) const;
  /// Since the last call, to whatever was asked.
  Result<std::vector<ArpAnswer>> answers() const;

 private:
  ArpProbe(PacketSocket packets, const MacAddress& mac) : packets_(std::move(packets)), mac_(mac) {}
  PacketSocket packets_;
  MacAddress mac_;
};

}  // namespace faultline::netlink

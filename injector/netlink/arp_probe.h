#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/link.h"
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
  ArpProbe(UniqueFd fd, int ifindex, const MacAddress& mac)
      : fd_(std::move(fd)), ifindex_(ifindex), mac_(mac) {}
  UniqueFd fd_;
  int ifindex_;
  MacAddress mac_;
};

}  // namespace faultline::netlink

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "injector/netlink/arp_probe.h"
#include "injector/netlink/socket.h"

namespace faultline::safety {

/// Those on the network of an interface who answer questions for their IPv4 address: they see
/// whether frames pass, and know nothing of what was done here.
class Neighbours {
 public:
  /// Those that the kernel knows behind the interface and that answer within `patience`; a few are
  /// enough. None where there is nobody, or no right to ask (CAP_NET_RAW).
  static Result<Neighbours> find(netlink::Socket& socket, int ifindex, Duration patience);

  bool empty() const { return addresses_.empty(); }
  std::size_t size() const { return addresses_.size(); }

  /// Asks all of them anew, and forgets who has answered before. What cannot be sent gets no
  /// answer.
  void ask();
  /// Who has answered since.
  std::size_t answered();
  /// Whether the last ask() could be sent at all.
  bool sent() const { return sent_; }

  /// Those that do not answer now, in words, once the interface may have another index; empty: all
  /// do. Asks again until `patience` is over.
  Result<std::string> silent(netlink::Socket& socket, int ifindex, Duration patience) const;

 private:
  std::vector<std::uint32_t> addresses_;  // network byte order
  std::optional<netlink::ArpProbe> probe_;
  std::set<std::uint32_t> answered_;
  bool sent_ = false;
};

}  // namespace faultline::safety

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// How restore() waits for whoever else manages the interface: networkd, NetworkManager, ifupdown.
/// They put back what is theirs, in an order of their own, and may remove what is not.
struct Settling {
  Duration quiet{};     ///< they are done when nothing has changed for so long; 0: there is nobody
  Duration patience{};  ///< the longest wait for that, each time, and for the carrier
  int rounds = 1;       ///< how often, at most, what is missing is put back
};
/// Of a namespace in which nobody is but ourselves.
inline constexpr Settling kNobodyElse{};
/// Of a host. They act within some 100 ms of the carrier; duplicate address detection and DHCP take
/// seconds and end in more changes, which the next round sees.
inline constexpr Settling kManagedHost{.quiet = 500ms, .patience = 5s, .rounds = 3};

/// What an interface has that the kernel drops when the interface goes down, and in part when its
/// carrier goes, and does not put back: addresses, nexthop objects and groups, routes, permanent
/// and proxy neighbours, the MTU of IPv6. To be put back in this order.
///
/// Not noted, because it comes back by itself: see entryOf(). Never touched: what others have.
class InterfaceConfiguration {
 public:
  using Json = nlohmann::json;

  /// Notes what is there now.
  static Result<InterfaceConfiguration> read(Socket& socket, int ifindex);

  /// What toJson() has written, perhaps in another process of this boot. kInvalidArgument, with the
  /// place, for anything else.
  static Result<InterfaceConfiguration> fromJson(const Json& json);
  Json toJson() const;

  /// The same configuration for an interface whose index has changed.
  void rebind(int ifindex);

  /// Adds what was noted and is missing, unless its lifetime is over; what is there stays as it is.
  /// Only where the IPv4 or IPv6 addresses are in another order than before, so that other source
  /// addresses would be chosen, all of the family are removed and added anew, also those that were
  /// not noted, with the routes that this costs. The interface must be up. A nexthop object needs
  /// its carrier, which is waited for only with a `settling.quiet`. kNotRestored, with a line for
  /// each thing that is still missing and the reason.
  Status restore(Socket& socket, const Settling& settling = kNobodyElse) const;

  /// How many of the noted things are missing now.
  Result<int> missing(Socket& socket) const;
  /// The same in the words of `ip`, e.g. "route 10.90.0.0/16 via 10.1.0.2 dev rail0 table 100".
  Result<std::vector<std::string>> missingInWords(Socket& socket) const;
  /// All that was noted. Other interfaces are called by their index, as "if7".
  std::vector<std::string> inWords(const std::string& interface_name) const;

  int ifindex() const { return ifindex_; }
  /// Whether nothing was noted, as before read().
  bool empty() const { return entries_.empty() && !ipv6_mtu_; }
  const std::vector<ConfigurationEntry>& entries() const { return entries_; }

 private:
  template <typename V>
  friend void visitFields(V& v, Of<InterfaceConfiguration> auto& configuration) {
    v.required("ifindex", configuration.ifindex_, kPositive);
    v.required("noted_at_ns", configuration.noted_at_);
    v.required("entries", configuration.entries_);
    v.field("ipv6_mtu", configuration.ipv6_mtu_);
  }
  friend Status checkFields(const InterfaceConfiguration& configuration);

  /// What is not as it was noted.
  struct Gap {
    std::vector<ConfigurationEntry> entries;
    std::vector<int> disordered;  ///< families whose addresses stand in another order
    bool ipv6_mtu = false;
    int size() const;
  };
  /// Noted entries whose life is not over, with what is left of it.
  InterfaceConfiguration due() const;
  static Result<InterfaceConfiguration> readWith(Socket& socket, Belongings of);
  Result<InterfaceConfiguration> readAgain(Socket& socket) const;
  Gap gapTo(const InterfaceConfiguration& present) const;
  std::vector<std::string> wordsOf(Socket& socket, const Gap& gap) const;
  Status putBack(Socket& socket) const;

  int ifindex_ = 0;
  TimePoint noted_at_;  ///< from when on lifetimes are counted
  std::vector<ConfigurationEntry> entries_;
  std::optional<std::uint32_t> ipv6_mtu_;  ///< where it is not the link's own
};

}  // namespace faultline::netlink

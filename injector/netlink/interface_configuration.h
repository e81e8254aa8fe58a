#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// How restore() goes about it where others set up the interface as well: networkd, NetworkManager,
/// ifupdown. They put back what is theirs, in an order of their own, and may remove what is not.
struct Settling {
  Duration quiet{};      ///< they are done when nothing has changed for so long; 0: there is nobody
  Duration patience{};   ///< the longest wait for that, each time, and for the carrier
  int rounds = 1;        ///< how often, at most, what is missing is put back
  Duration least{};      ///< for so long after the carrier, at least, it is looked again
  Duration limit = 10s;  ///< after so long nothing is waited for, nor put back once more
  /// Nothing is removed that the configuration itself could not put back.
  bool keep_foreign = false;
};
/// Of a namespace in which nobody is but ourselves.
inline constexpr Settling kNobodyElse{};
/// Of a host on which nobody acts by himself.
inline constexpr Settling kUnmanagedHost{.keep_foreign = true};
/// They act within some 100 ms of the carrier, and now and then a second later; duplicate address
/// detection and DHCP take seconds and end in more changes, which the next round sees.
inline constexpr Settling kManagedHost{
    .quiet = 500ms, .patience = 5s, .rounds = 3, .least = 2s, .limit = 10s, .keep_foreign = true};

/// That of an interface of this host: `run`/systemd/netif/links and `run`/NetworkManager/devices
/// have a file for each that is managed.
Settling settlingOnHost(int ifindex, const std::string& run = "/run");

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
  /// Only where the noted IPv4 or IPv6 addresses stand in another order than before, so that other
  /// source addresses would be chosen, they are removed and added anew, with the routes that this
  /// costs. Likewise noted IPv4 routes to one destination, of which the first is used. Of IPv4 so
  /// are those that were not noted. With `settling.keep_foreign` the order stays and is told where
  /// others have something of the family. The interface must be up. A nexthop object needs its
  /// carrier, which is waited for only with a `settling.quiet`. kNotRestored, with a line for each
  /// thing that is still missing and the reason.
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
    std::vector<ConfigurationEntry> misplaced;  ///< routes that are there, in another order
    std::vector<int> disordered;                ///< families whose addresses stand in another order
    bool ipv6_mtu = false;
    int size() const;
  };
  /// What the kernel, or we ourselves, have against putting it back; empty: nothing.
  struct Refusals {
    std::map<std::string, std::string> of_entries;  ///< by the request
    std::map<int, std::string> of_order;            ///< by family
    std::string of_ipv6_mtu;
  };
  /// Noted entries whose life is not over, with what is left of it.
  InterfaceConfiguration due() const;
  /// What is there of the kinds that were noted.
  Result<InterfaceConfiguration> readAgain(Socket& socket) const;
  /// All that there is, of whatever kind.
  Result<std::vector<ConfigurationEntry>> readAll(Socket& socket) const;
  /// `noted`: by which the order of addresses is judged, and not by entries of others beside them.
  /// Routes over another interface that is down do not count: they come back with that one.
  Result<Gap> gapTo(Socket& socket, const InterfaceConfiguration& present,
                    const std::vector<ConfigurationEntry>& noted) const;
  /// A line for each thing in it.
  std::vector<std::string> wordsOf(Socket& socket, const Gap& gap) const;
  /// What goes with each of these lines; empty: it has been put back.
  static std::vector<std::string> reasonsOf(const Gap& gap, const Refusals& refusals);
  Status putBack(Socket& socket, bool keep_foreign) const;

  int ifindex_ = 0;
  TimePoint noted_at_;  ///< from when on lifetimes are counted
  std::vector<ConfigurationEntry> entries_;
  std::optional<std::uint32_t> ipv6_mtu_;  ///< where it is not the link's own
};

}  // namespace faultline::netlink

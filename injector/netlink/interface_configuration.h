#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// The addresses and routes of one interface, to be put back after the kernel has dropped them:
/// setting an interface down removes its static routes and global IPv6 addresses, and setting it up
/// does not bring them back.
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

  /// Adds what was noted and is missing; what is still there stays untouched. The interface must
  /// be up (and have carrier, for a gateway to be reachable).
  Status restore(Socket& socket) const;

  /// How many of the noted addresses and routes are missing now.
  Result<int> missing(Socket& socket) const;

  int ifindex() const { return ifindex_; }
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

  Result<std::vector<ConfigurationEntry>> missingEntries(Socket& socket) const;

  int ifindex_ = 0;
  TimePoint noted_at_;  ///< from when on lifetimes are counted
  std::vector<ConfigurationEntry> entries_;
  std::optional<std::uint32_t> ipv6_mtu_;  ///< where it is not the link's own
};

}  // namespace faultline::netlink

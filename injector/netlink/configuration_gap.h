#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/present_routes.h"
#include "injector/netlink/repair.h"
#include "injector/netlink/route_legs.h"

/// What is missing of a configuration, and the requests that put it back. Pure.
namespace faultline::netlink {

/// What is there now, to be asked for what was noted before.
class PresentEntries {
 public:
  /// `own_nexthops`: the objects of the interface when its configuration was noted. `noted`: see
  /// PresentRoutes.
  PresentEntries(const std::vector<ConfigurationEntry>& present, int ifindex,
                 std::set<std::uint32_t> own_nexthops,
                 const std::vector<ConfigurationEntry>& noted = {});

  /// Whether it is there, at least the part of it that is the interface's: of a route its legs, of
  /// a group its members. An address or neighbour that is there with other properties is there:
  /// somebody wanted them.
  bool has(const ConfigurationEntry& noted) const;

  /// Whether it is a route that is there, and stands in another order than before.
  bool isMisplaced(const ConfigurationEntry& noted) const { return routes_.isMisplaced(noted); }

  /// How to put back what is missing or misplaced. What is left of it, or has been added to it, is
  /// kept.
  Repair repair(const ConfigurationEntry& noted) const;

 private:
  Repair repairGroup(const ConfigurationEntry& noted) const;

  std::set<std::uint32_t> own_nexthops_;
  std::unordered_set<std::string> keys_;  // of addresses, neighbours, objects
  std::unordered_map<std::uint32_t, std::vector<GroupMember>> groups_;
  PresentRoutes routes_;
};

/// The identifiers of nexthop objects among the entries, without groups.
std::set<std::uint32_t> nexthopObjects(const std::vector<ConfigurationEntry>& entries);

/// What has to be looked for to see whether entries are still there: besides what belongs to the
/// interface, what has lost its part of it.
Belongings whatToLookFor(const std::vector<ConfigurationEntry>& noted, int ifindex);

bool isAddress(const ConfigurationEntry& entry, int family);
/// Whether both are the same address, whatever their lifetimes and flags.
bool isSameAddress(const ConfigurationEntry& one, const ConfigurationEntry& other);
bool isProxy(const ConfigurationEntry& entry);
/// Whether one of the entries is an IPv6 address of the same network as this one, whose route has
/// another priority. The kernel mixes up the two routes when one of the addresses is changed.
bool hasRival(const ConfigurationEntry& address, const std::vector<ConfigurationEntry>& entries);
/// The IPv6 routes whose packets have one of these addresses as their source. The kernel keeps such
/// a route when its address is removed, without its source.
std::vector<ConfigurationEntry> routesFrom(const std::vector<ConfigurationEntry>& addresses,
                                           const std::vector<ConfigurationEntry>& present);

/// The interfaces that a route leads over. None where the interface itself is among them. Otherwise
/// the route belongs to that interface by its source, which is an address of it.
std::set<int> onlyOverOthers(const ConfigurationEntry& entry, int ifindex);

/// The addresses of the family that have to be removed and added anew, in this order. The noted
/// ones that are there then stand in the order in which they were noted, which decides about source
/// addresses. A primary address of IPv4 is primary again. None: they stand so already. Those of
/// IPv4 that were not noted come last: one may have become the primary one.
std::vector<ConfigurationEntry> toAddAnew(const std::vector<ConfigurationEntry>& noted,
                                          const std::vector<ConfigurationEntry>& present,
                                          int family);

/// What is there and was not noted.
std::vector<ConfigurationEntry> foreignTo(const std::vector<ConfigurationEntry>& noted,
                                          const std::vector<ConfigurationEntry>& present,
                                          int ifindex);
/// Whether something among the entries may go when addresses of the family are removed: whatever
/// is of this family, or of none.
bool mayGoWithAddresses(const std::vector<ConfigurationEntry>& entries, int family);

/// The noted entries, and behind those of each kind what is there and was not noted.
std::vector<ConfigurationEntry> withForeign(const std::vector<ConfigurationEntry>& noted,
                                            const std::vector<ConfigurationEntry>& present,
                                            int ifindex);

}  // namespace faultline::netlink

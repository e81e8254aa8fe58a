#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injector/netlink/configuration_entry.h"

/// Routes over several interfaces, and groups of nexthop objects, of which one interface may lose
/// its part while the rest lives. Pure.
namespace faultline::netlink {

/// One way of a route: an interface, perhaps a gateway.
struct RouteLeg {
  int ifindex = 0;
  std::string bytes;  ///< as in RTA_MULTIPATH: rtnexthop and its attributes
  /// Whatever their weights: the only leg of a route has none.
  bool samePath(const RouteLeg& other) const;
};

/// A route apart from its ways, and these: what is written in one line of `ip route` or in several
/// is the same here. Of a route by a nexthop object there are no legs.
struct RouteParts {
  std::string frame;  ///< of the request, without what belongs to legs and without a lifetime
  std::vector<RouteLeg> legs;

  /// Those of the interface; all of them where it has none (and is concerned by its source).
  std::vector<RouteLeg> legsOf(int ifindex) const;
};
RouteParts partsOf(const ConfigurationEntry& route);

/// The same route with only these legs, at least one, in their order.
std::string withLegs(const ConfigurationEntry& route, const std::vector<RouteLeg>& legs);

/// What routes have in common of which the kernel uses the first that it can (IPv4): destination,
/// source, type of service, table and priority. Of a message or request about a route.
std::string destinationOf(const nlmsghdr* message);
std::string destinationOf(const ConfigurationEntry& route);

/// The request that removes this route, for RTM_DELROUTE (IPv4). The kernel takes the first with
/// its destination whose legs are the first of these: hitsFirst().
std::string removalOf(const ConfigurationEntry& route);
/// Whether the removal of a route with `legs` would hit one with these `others`, if that stood
/// first. None are the legs of a route by a nexthop object, whose identifier is compared.
bool hitsFirst(const std::vector<RouteLeg>& legs, const std::vector<RouteLeg>& others);

/// A member of a group of nexthop objects: identifier and weight.
struct GroupMember {
  std::uint32_t id = 0;
  std::string bytes;  ///< nexthop_grp
};
/// The identifier of an object or group.
std::uint32_t nexthopId(const ConfigurationEntry& nexthop);
/// None: it is no group.
std::vector<GroupMember> membersOf(const ConfigurationEntry& nexthop);
/// The same group with these members, at least one.
std::string withMembers(const ConfigurationEntry& group, const std::vector<GroupMember>& members);

}  // namespace faultline::netlink

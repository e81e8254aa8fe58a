#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/enum_names.h"
#include "base/json_fields.h"
#include "base/status.h"

/// What an interface has and the kernel may drop, each as the netlink request that adds it again.
/// Pure: from messages of the kernel and bytes of a file to values, and back.
namespace faultline::netlink {

/// A netlink request behind its nlmsghdr: the family's structure and its attributes.
struct RequestBytes {
  std::string bytes;

  std::string hex() const;
  /// kInvalidArgument for what is not pairs of hexadecimal digits.
  static Result<RequestBytes> fromHex(std::string_view text);
  bool operator==(const RequestBytes&) const = default;
};

/// In the order in which they are put back: each may need those before it.
enum class EntryKind : std::uint8_t { kAddress, kNexthop, kRoute, kNeighbour };
std::span<const EnumName<EntryKind>> namesOf(EntryKind which);

/// Where a route goes among those to the same destination, in the same table and with the same
/// priority, of which the first is used (IPv4).
enum class RoutePlace : std::uint8_t {
  kAlone,   ///< there were no others
  kBefore,  ///< before those that do not belong to the interface, or there are none of these
  kBehind,  ///< behind one of these; of IPv6 also behind one of the interface's
};
std::span<const EnumName<RoutePlace>> namesOf(RoutePlace which);

/// An address, a nexthop object or group, a route, or a permanent or proxy neighbour.
struct ConfigurationEntry {
  EntryKind kind = EntryKind::kAddress;
  RequestBytes request;
  RoutePlace place = RoutePlace::kAlone;
  bool operator==(const ConfigurationEntry&) const = default;
};

template <typename V>
void visitFields(V& v, Of<ConfigurationEntry> auto& entry) {
  v.required("kind", entry.kind);
  v.required("request", entry.request);
  v.field("place", entry.place);
}

/// AF_INET or AF_INET6; AF_UNSPEC of most nexthop objects.
int familyOf(const ConfigurationEntry& entry);

/// RTM_NEWADDR, RTM_NEWNEXTHOP, ...
int messageType(EntryKind kind);

/// What an entry may name to belong to an interface. The index of the interface is one way; what is
/// listed here by name depends on it.
struct Belongings {
  int ifindex = 0;
  std::set<std::uint32_t> nexthops =
      {};  ///< identifiers of its objects, and of groups with one of them
  /// Its IPv4 addresses, as they stand in messages: when one goes, so do routes over any interface
  /// whose packets have it as their source.
  std::set<std::string> sources = {};
  /// Routes that belong whatever they lead over now: RouteParts::frame.
  std::set<std::string> frames = {};
  /// What it is called: an IPv4 address whose label is that takes whatever name the interface has.
  std::string name = {};
};

/// What the kernel tells, as the request that adds it again: without states, ages and counters.
/// Nothing for what does not belong to the interface, and for what comes back by itself: routes of
/// protocol kernel (with their address), routes that a router advertises, temporary addresses,
/// learned neighbours, and the automatic link-local address. That one the kernel marks as its own
/// (IFA_PROTO, or a stable privacy address); before Linux 5.18 it is taken for one set by hand,
/// which is the same address in the end. Addresses and nexthops that belong are added to `of`.
std::optional<ConfigurationEntry> entryOf(const nlmsghdr* message, Belongings& of);

/// Whether it is what entryOf() could have made for this interface: kInvalidArgument for others.
Status checkEntry(const ConfigurationEntry& entry, int ifindex);

/// The same for an interface whose index has changed.
void rebindEntry(ConfigurationEntry& entry, int from, int to);

/// The same after some time, with what is left of its lifetimes. Nothing when its life is over.
std::optional<ConfigurationEntry> afterTime(ConfigurationEntry entry, Duration passed);

}  // namespace faultline::netlink

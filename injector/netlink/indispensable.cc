#include "injector/netlink/indispensable.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace faultline::netlink {
namespace {

/// The interfaces of each nexthop object, by its number.
using Nexthops = std::map<std::uint32_t, std::vector<int>>;

Result<Nexthops> readNexthops(Socket& socket) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
  Nexthops nexthops;
  Message message(RTM_GETNEXTHOP, 0, nhmsg{});
  const Status listed = socket.dump(
      message, "list nexthops",
      [&](const nlmsghdr* answer) {
        const Attributes<NHA_MAX> nexthop(answer, sizeof(nhmsg));
        const auto id = nexthop.value<std::uint32_t>(NHA_ID);
        if (const int only = nexthop.value<int>(NHA_OIF); only != 0) nexthops[id] = {only};
        const nlattr* const group = nexthop[NHA_GROUP];
        if (group == nullptr) return;
        const auto* const members = static_cast<const nexthop_grp*>(nla_data(group));
        const std::size_t count = static_cast<std::size_t>(nla_len(group)) / sizeof(nexthop_grp);
        for (std::size_t i = 0; i < count; ++i) groups[id].push_back(members[i].id);
      },
      [&] {
        groups.clear();
        nexthops.clear();
      });
  if (listed.code() == Code::kUnsupported) return Nexthops{};  // a kernel before 5.3
  RETURN_IF_ERROR(listed);
  for (const auto& [id, members] : groups) {
    for (const std::uint32_t member : members) {
      const std::vector<int>& its = nexthops[member];
      std::vector<int>& all = nexthops[id];
      all.insert(all.end(), its.begin(), its.end());
    }
  }
  return nexthops;
}

/// All interfaces over which a route leads.
std::vector<int> interfacesOf(const nlmsghdr* message, const Nexthops& nexthops) {
  const Attributes<RTA_MAX> route(message, sizeof(rtmsg));
  std::vector<int> interfaces;
  if (const int only = route.value<int>(RTA_OIF); only != 0) interfaces.push_back(only);
  // All that is told with net.ipv4.nexthop_compat_mode = 0.
  if (const auto object = nexthops.find(route.value<std::uint32_t>(RTA_NH_ID));
      object != nexthops.end()) {
    interfaces.insert(interfaces.end(), object->second.begin(), object->second.end());
  }
  const nlattr* const hops = route[RTA_MULTIPATH];
  if (hops == nullptr) return interfaces;
  const auto* hop = static_cast<const rtnexthop*>(nla_data(hops));
  int left = nla_len(hops);
  while (RTNH_OK(hop, left)) {
    interfaces.push_back(hop->rtnh_ifindex);
    left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
    hop = RTNH_NEXT(hop);
  }
  return interfaces;
}

/// A routing table of a family.
using Table = std::pair<int, std::uint32_t>;

/// Those that rules choose by source alone. A table of which no rule speaks may be a VRF's.
Result<std::set<Table>> tablesOfSources(Socket& socket) {
  std::map<Table, bool> by_source;
  Message message(RTM_GETRULE, 0, fib_rule_hdr{});
  const Status listed = socket.dump(
      message, "list routing rules",
      [&](const nlmsghdr* answer) {
        const auto* const rule = static_cast<const fib_rule_hdr*>(nlmsg_data(answer));
        if (rule->action != FR_ACT_TO_TBL) return;
        const Attributes<FRA_MAX> attributes(answer, sizeof(fib_rule_hdr));
        const auto wide = attributes.value<std::uint32_t>(FRA_TABLE);
        const Table table{rule->family, wide != 0 ? wide : rule->table};
        const auto known = by_source.emplace(table, true).first;
        known->second = known->second && rule->src_len > 0;
      },
      [&] { by_source.clear(); });
  if (!listed.ok() && listed.code() != Code::kUnsupported) return listed;  // a kernel without rules
  std::set<Table> tables;
  for (const auto& [table, only] : by_source) {
    if (only) tables.insert(table);
  }
  return tables;
}

/// A default route in parts is one too: halves of everything, as tunnels have them, and 2000::/3,
/// which is all of IPv6 that is reached from outside.
constexpr int kWidestOfPart = 3;

Result<std::vector<int>> interfacesOfDefaultRoutes(Socket& socket, const Nexthops& nexthops) {
  ASSIGN_OR_RETURN(const std::set<Table> of_sources, tablesOfSources(socket));
  std::vector<int> interfaces;
  Message message(RTM_GETROUTE, 0, rtmsg{});
  RETURN_IF_ERROR(socket.dump(
      message, "list routes",
      [&](const nlmsghdr* answer) {
        const auto* const header = static_cast<const rtmsg*>(nlmsg_data(answer));
        if (header->rtm_dst_len > kWidestOfPart || header->rtm_type != RTN_UNICAST) return;
        const Attributes<RTA_MAX> route(answer, sizeof(rtmsg));
        const auto wide = route.value<std::uint32_t>(RTA_TABLE);
        const Table table{header->rtm_family, wide != 0 ? wide : header->rtm_table};
        if (of_sources.contains(table)) return;
        const std::vector<int> found = interfacesOf(answer, nexthops);
        interfaces.insert(interfaces.end(), found.begin(), found.end());
      },
      [&] { interfaces.clear(); }));
  return interfaces;
}

/// What the kernel says where no route leads to an address, be it that one forbids it.
bool meansNoRoute(Code code) {
  return code == Code::kUnavailable || code == Code::kInvalidArgument ||
         code == Code::kPermissionDenied || code == Code::kNotFound ||
         code == Code::kUnsupported;  // no IPv6 at all
}

/// An address of this machine in the binary form of the family; empty: it is none of that family.
std::string sourceOf(int family, const std::string& from) {
  in6_addr six{};
  constexpr std::size_t kMappedAt = 12;
  const bool mapped = ::inet_pton(AF_INET6, from.c_str(), &six) == 1 && IN6_IS_ADDR_V4MAPPED(&six);
  if (family == AF_INET6 || mapped) {
    const bool has =
        ::inet_pton(AF_INET6, from.c_str(), &six) == 1 && mapped == (family == AF_INET);
    if (!has) return "";
    const auto* const bytes = reinterpret_cast<const char*>(six.s6_addr);
    return mapped ? std::string(bytes + kMappedAt, sizeof(in_addr))
                  : std::string(bytes, sizeof six);
  }
  in_addr four{};
  if (::inet_pton(family, from.c_str(), &four) != 1) return "";
  return std::string(reinterpret_cast<const char*>(&four), sizeof four);
}

/// Of the route by which packets to an address leave; none when there is none. `from` may choose
/// it; where it is no address of this namespace, the route without it is taken.
Result<std::vector<int>> interfacesTowards(Socket& socket, const Nexthops& nexthops, int family,
                                           const void* address, std::size_t size,
                                           std::string_view text, const std::string& from) {
  constexpr unsigned char kBitsOfByte = 8;
  rtmsg header{};
  header.rtm_family = static_cast<unsigned char>(family);
  header.rtm_dst_len = static_cast<unsigned char>(size * kBitsOfByte);
  header.rtm_flags = RTM_F_FIB_MATCH;  // with all of its hops, and not one that is chosen
  const std::string source = sourceOf(family, from);
  for (const bool with_source : {true, false}) {
    if (with_source && source.empty()) continue;
    header.rtm_src_len = static_cast<unsigned char>(with_source ? size * kBitsOfByte : 0);
    Message message(RTM_GETROUTE, 0, header);
    message.put(RTA_DST, address, size);
    if (with_source) message.put(RTA_SRC, source.data(), source.size());
    std::vector<int> interfaces;
    const Status status =
        socket.ask(message, fmt::format("look for the route to {}", text),
                   [&](const nlmsghdr* answer) { interfaces = interfacesOf(answer, nexthops); });
    if (!status.ok() && !meansNoRoute(status.code())) return status;
    if (!interfaces.empty()) return interfaces;
  }
  return std::vector<int>{};
}

/// `address` may have a scope, as link-local ones do ("fe80::1%eth0"), and then leads there.
Result<std::vector<int>> interfacesTo(Socket& socket, const Nexthops& nexthops,
                                      const std::vector<NetDevice>& links, const NeededPeer& peer) {
  const std::string& address = peer.address;
  const std::size_t scope = address.find('%');
  if (scope != std::string::npos) {
    const auto link = std::ranges::find(links, address.substr(scope + 1), &NetDevice::name);
    return link == links.end() ? std::vector<int>{} : std::vector<int>{link->ifindex};
  }
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) {
    return interfacesTowards(socket, nexthops, AF_INET, &four, sizeof four, address, peer.from);
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) != 1) return std::vector<int>{};  // a name
  if (!IN6_IS_ADDR_V4MAPPED(&six)) {
    return interfacesTowards(socket, nexthops, AF_INET6, &six, sizeof six, address, peer.from);
  }
  constexpr std::size_t kMappedAt = 12;
  return interfacesTowards(socket, nexthops, AF_INET, six.s6_addr + kMappedAt, sizeof four, address,
                           peer.from);
}

/// The first that is among `over`; nullptr: none is.
const int* firstOf(const std::vector<int>& interfaces, const std::set<int>& over) {
  const auto found = std::ranges::find_if(interfaces, [&](int one) { return over.contains(one); });
  return found == interfaces.end() ? nullptr : &*found;
}

/// " by way of br0", where it is not the interface itself.
std::string byWayOf(const std::vector<NetDevice>& links, int carrier, int ifindex) {
  if (carrier == ifindex) return "";
  const auto link = std::ranges::find(links, carrier, &NetDevice::ifindex);
  return link->bridge_ifindex == ifindex
             ? fmt::format(" by way of {}, which is a member of it", link->name)
             : fmt::format(" by way of {}, which sits on it", link->name);
}

}  // namespace

std::set<int> interfacesOver(const std::vector<NetDevice>& links, int ifindex) {
  std::set<int> over{ifindex};
  for (std::size_t before = 0; before != over.size();) {
    before = over.size();
    for (const NetDevice& link : links) {
      // The index of what is below in another namespace means something else here.
      if (!link.peer_elsewhere && over.contains(link.peer_ifindex)) over.insert(link.ifindex);
      if (over.contains(link.ifindex) && link.bridge_ifindex != 0) over.insert(link.bridge_ifindex);
    }
  }
  return over;
}

Result<std::optional<std::string>> whyIndispensable(Socket& socket, int ifindex,
                                                    const std::vector<NeededPeer>& peers) {
  ASSIGN_OR_RETURN(const std::vector<NetDevice> links, listNetDevices(socket));
  std::set<int> over = interfacesOver(links, ifindex);
  // Of a bridge or a bond its members as well: what goes over one of them goes through it.
  for (const NetDevice& link : links) {
    if (link.bridge_ifindex == ifindex) over.insert(link.ifindex);
  }
  ASSIGN_OR_RETURN(const Nexthops nexthops, readNexthops(socket));
  ASSIGN_OR_RETURN(const std::vector<int> defaults, interfacesOfDefaultRoutes(socket, nexthops));
  if (const int* const carrier = firstOf(defaults, over)) {
    return std::optional(fmt::format(
        "carries a default route{}: this machine may only be reachable over it; choose a device of "
        "a network for data",
        byWayOf(links, *carrier, ifindex)));
  }
  for (const NeededPeer& peer : peers) {
    ASSIGN_OR_RETURN(const std::vector<int> interfaces,
                     interfacesTo(socket, nexthops, links, peer));
    const int* const carrier = firstOf(interfaces, over);
    if (carrier == nullptr) continue;
    return std::optional(fmt::format("carries the way to {}, {}{}: {}", peer.address, peer.what,
                                     byWayOf(links, *carrier, ifindex), peer.remedy));
  }
  return std::optional<std::string>();
}

}  // namespace faultline::netlink

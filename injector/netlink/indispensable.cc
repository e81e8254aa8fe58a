#include "injector/netlink/indispensable.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace faultline::netlink {
namespace {

/// All interfaces over which a route leads.
std::vector<int> interfacesOf(const nlmsghdr* message) {
  const Attributes<RTA_MAX> route(message, sizeof(rtmsg));
  std::vector<int> interfaces;
  if (const int only = route.value<int>(RTA_OIF); only != 0) interfaces.push_back(only);
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

Result<std::vector<int>> interfacesOfDefaultRoutes(Socket& socket) {
  std::vector<int> interfaces;
  Message message(RTM_GETROUTE, 0, rtmsg{});
  RETURN_IF_ERROR(socket.dump(
      message, "list routes",
      [&](const nlmsghdr* answer) {
        const auto* const header = static_cast<const rtmsg*>(nlmsg_data(answer));
        if (header->rtm_dst_len != 0 || header->rtm_type != RTN_UNICAST) return;
        const std::vector<int> found = interfacesOf(answer);
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

/// Of the route by which packets to an address leave; none when there is none.
Result<std::vector<int>> interfacesTowards(Socket& socket, int family, const void* address,
                                           std::size_t size, std::string_view text) {
  constexpr unsigned char kBitsOfByte = 8;
  rtmsg header{};
  header.rtm_family = static_cast<unsigned char>(family);
  header.rtm_dst_len = static_cast<unsigned char>(size * kBitsOfByte);
  header.rtm_flags = RTM_F_FIB_MATCH;  // with all of its hops, and not one that is chosen
  Message message(RTM_GETROUTE, 0, header);
  message.put(RTA_DST, address, size);
  std::vector<int> interfaces;
  const Status status =
      socket.ask(message, fmt::format("look for the route to {}", text),
                 [&](const nlmsghdr* answer) { interfaces = interfacesOf(answer); });
  if (!status.ok() && !meansNoRoute(status.code())) return status;
  return interfaces;
}

/// `address` may have a scope, as link-local ones do ("fe80::1%eth0"), and then leads there.
Result<std::vector<int>> interfacesTo(Socket& socket, const std::vector<Link>& links,
                                      const std::string& address) {
  const std::size_t scope = address.find('%');
  if (scope != std::string::npos) {
    const auto link = std::ranges::find(links, address.substr(scope + 1), &Link::name);
    return link == links.end() ? std::vector<int>{} : std::vector<int>{link->ifindex};
  }
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) {
    return interfacesTowards(socket, AF_INET, &four, sizeof four, address);
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) != 1) return std::vector<int>{};  // a name
  if (!IN6_IS_ADDR_V4MAPPED(&six)) {
    return interfacesTowards(socket, AF_INET6, &six, sizeof six, address);
  }
  constexpr std::size_t kMappedAt = 12;
  return interfacesTowards(socket, AF_INET, six.s6_addr + kMappedAt, sizeof four, address);
}

/// The first that is among `over`; nullptr: none is.
const int* firstOf(const std::vector<int>& interfaces, const std::set<int>& over) {
  const auto found = std::ranges::find_if(interfaces, [&](int one) { return over.contains(one); });
  return found == interfaces.end() ? nullptr : &*found;
}

/// " by way of br0", where it is not the interface itself.
std::string byWayOf(const std::vector<Link>& links, int carrier, int ifindex) {
  if (carrier == ifindex) return "";
  const auto link = std::ranges::find(links, carrier, &Link::ifindex);
  return fmt::format(" by way of {}, which sits on it", link->name);
}

}  // namespace

std::set<int> interfacesOver(const std::vector<Link>& links, int ifindex) {
  std::set<int> over{ifindex};
  for (std::size_t before = 0; before != over.size();) {
    before = over.size();
    for (const Link& link : links) {
      // The index of what is below in another namespace means something else here.
      if (!link.peer_elsewhere && over.contains(link.peer_ifindex)) over.insert(link.ifindex);
      if (over.contains(link.ifindex) && link.bridge_ifindex != 0) over.insert(link.bridge_ifindex);
    }
  }
  return over;
}

Result<std::optional<std::string>> whyIndispensable(Socket& socket, int ifindex,
                                                    const std::vector<NeededPeer>& peers) {
  ASSIGN_OR_RETURN(const std::vector<Link> links, listLinks(socket));
  const std::set<int> over = interfacesOver(links, ifindex);
  ASSIGN_OR_RETURN(const std::vector<int> defaults, interfacesOfDefaultRoutes(socket));
  if (const int* const carrier = firstOf(defaults, over)) {
    return std::optional(fmt::format(
        "carries a default route{}: this machine may only be reachable over it; choose a device of "
        "a network for data",
        byWayOf(links, *carrier, ifindex)));
  }
  for (const NeededPeer& peer : peers) {
    ASSIGN_OR_RETURN(const std::vector<int> interfaces, interfacesTo(socket, links, peer.address));
    const int* const carrier = firstOf(interfaces, over);
    if (carrier == nullptr) continue;
    return std::optional(fmt::format("carries the way to {}, {}{}: {}", peer.address, peer.what,
                                     byWayOf(links, *carrier, ifindex), peer.remedy));
  }
  return std::optional<std::string>();
}

}  // namespace faultline::netlink

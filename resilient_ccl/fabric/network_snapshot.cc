#include "resilient_ccl/fabric/network_snapshot.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <memory>
#include <string_view>

namespace faultline::fabric {
namespace {

using Take = std::function<void(nlmsghdr*)>;

int takeMessage(nl_msg* message, void* take) {
  (*static_cast<Take*>(take))(nlmsg_hdr(message));
  return NL_OK;
}

Status list(nl_sock* socket, int type, int family, std::string_view what, Take take) {
  nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, takeMessage, &take);
  rtgenmsg request{.rtgen_family = static_cast<unsigned char>(family)};
  int error = nl_send_simple(socket, type, NLM_F_DUMP, &request, sizeof(request));
  if (error >= 0) error = nl_recvmsgs_default(socket);
  if (error >= 0 || error == -NLE_DUMP_INTR) return okStatus();
  return errorf(Code::kIo, "list {} over netlink: {}", what, nl_geterror(error));
}

std::string textOf(nlmsghdr* header, int size, int attribute) {
  nlattr* const found = nlmsg_find_attr(header, size, attribute);
  return found == nullptr ? "" : nla_get_string(found);
}

int numberOf(nlmsghdr* header, int size, int attribute) {
  nlattr* const found = nlmsg_find_attr(header, size, attribute);
  return found == nullptr ? 0 : static_cast<int>(nla_get_u32(found));
}

std::string kindOf(nlmsghdr* header) {
  nlattr* const information = nlmsg_find_attr(header, sizeof(ifinfomsg), IFLA_LINKINFO);
  if (information == nullptr) return "";
  nlattr* const kind =
      nla_find(static_cast<nlattr*>(nla_data(information)), nla_len(information), IFLA_INFO_KIND);
  return kind == nullptr ? "" : nla_get_string(kind);
}

void addLink(std::vector<NetworkLink>& links, nlmsghdr* header) {
  if (header->nlmsg_type != RTM_NEWLINK) return;
  const auto* const link = static_cast<const ifinfomsg*>(nlmsg_data(header));
  constexpr int kSize = sizeof(ifinfomsg);
  const bool elsewhere = nlmsg_find_attr(header, kSize, IFLA_LINK_NETNSID) != nullptr;
  const std::string kind = kindOf(header);
  // The other end of a veth is nothing that it stands on.
  const bool stands = !elsewhere && kind != "veth";
  const int lower = stands ? numberOf(header, kSize, IFLA_LINK) : 0;
  links.push_back({.index = link->ifi_index,
                   .name = textOf(header, kSize, IFLA_IFNAME),
                   .kind = kind,
                   .master = numberOf(header, kSize, IFLA_MASTER),
                   .lower = lower == link->ifi_index ? 0 : lower,
                   .up = (link->ifi_flags & IFF_UP) != 0,
                   .loopback = (link->ifi_flags & IFF_LOOPBACK) != 0,
                   .infiniband = link->ifi_type == ARPHRD_INFINIBAND});
}

void addAddress(std::vector<NetworkLink>& links, nlmsghdr* header) {
  if (header->nlmsg_type != RTM_NEWADDR) return;
  const auto* const address = static_cast<const ifaddrmsg*>(nlmsg_data(header));
  constexpr int kSize = sizeof(ifaddrmsg);
  const int family = address->ifa_family;
  const auto link =
      std::ranges::find(links, static_cast<int>(address->ifa_index), &NetworkLink::index);
  if (link == links.end() || (family != AF_INET && family != AF_INET6)) return;
  nlattr* found = nlmsg_find_attr(header, kSize, IFA_LOCAL);  // of IPv6 mostly IFA_ADDRESS alone
  if (found == nullptr) found = nlmsg_find_attr(header, kSize, IFA_ADDRESS);
  const int bytes = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  if (found == nullptr || nla_len(found) != bytes) return;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, nla_data(found), text.data(), text.size());
  constexpr std::uint32_t kLinkLocal = 0xa9fe;  // 169.254
  const std::uint32_t ipv4 = family == AF_INET ? ntohl(nla_get_u32(found)) : 0;
  link->addresses.push_back(
      {.text = text.data(),
       .ipv4 = ipv4,
       .prefix = address->ifa_prefixlen,
       .label = textOf(header, kSize, IFA_LABEL),
       .secondary = family == AF_INET && (address->ifa_flags & IFA_F_SECONDARY) != 0,
       .ofItsLink =
           family == AF_INET ? ipv4 >> 16 == kLinkLocal : address->ifa_scope == RT_SCOPE_LINK});
}

void addRule(std::vector<NetworkRule>& rules, nlmsghdr* header) {
  if (header->nlmsg_type != RTM_NEWRULE) return;
  const auto* const rule = static_cast<const fib_rule_hdr*>(nlmsg_data(header));
  constexpr int kSize = sizeof(fib_rule_hdr);
  if (rule->action != FR_ACT_TO_TBL) return;
  const std::string arrivesBy = textOf(header, kSize, FRA_IIFNAME);
  if (!arrivesBy.empty() && arrivesBy != "lo") return;  // "lo": what this node sends itself
  const int table = numberOf(header, kSize, FRA_TABLE);
  rules.push_back({.from = ntohl(static_cast<std::uint32_t>(numberOf(header, kSize, FRA_SRC))),
                   .prefix = rule->src_len,
                   .table = table != 0 ? table : rule->table,
                   .device = textOf(header, kSize, FRA_OIFNAME)});
}

void addRoute(std::vector<NetworkRoute>& routes, nlmsghdr* header) {
  if (header->nlmsg_type != RTM_NEWROUTE) return;
  const auto* const route = static_cast<const rtmsg*>(nlmsg_data(header));
  constexpr int kSize = sizeof(rtmsg);
  if (route->rtm_type != RTN_UNICAST || (route->rtm_flags & RTM_F_CLONED) != 0) return;
  const int table = numberOf(header, kSize, RTA_TABLE);
  NetworkRoute one{.table = table != 0 ? table : route->rtm_table,
                   .to = ntohl(static_cast<std::uint32_t>(numberOf(header, kSize, RTA_DST))),
                   .prefix = route->rtm_dst_len};
  const auto add = [&](int device, bool gateway) {
    one.device = device;
    one.gateway = gateway;
    const bool known = gateway && std::ranges::any_of(routes, [&](const NetworkRoute& other) {
                         return other.gateway && other.table == one.table && other.device == device;
                       });
    if (device != 0 && !known) routes.push_back(one);
  };
  const auto via = [&](int size, int type) {
    return nlmsg_find_attr(header, size, type) != nullptr;
  };
  add(numberOf(header, kSize, RTA_OIF), via(kSize, RTA_GATEWAY) || via(kSize, RTA_VIA));
  nlattr* const several = nlmsg_find_attr(header, kSize, RTA_MULTIPATH);
  if (several == nullptr) return;
  int left = nla_len(several);
  for (auto* hop = static_cast<rtnexthop*>(nla_data(several)); RTNH_OK(hop, left);) {
    add(hop->rtnh_ifindex, hop->rtnh_len > sizeof(rtnexthop));
    left -= RTNH_ALIGN(hop->rtnh_len);
    hop = RTNH_NEXT(hop);
  }
}

/// The kernel takes the larger one of the two.
int setting(const std::string& interface, const char* name) {
  int largest = 0;
  for (const std::string& of : {std::string("all"), interface}) {
    std::ifstream file("/proc/sys/net/ipv4/conf/" + of + "/" + name);
    int value = 0;
    if (file >> value) largest = std::max(largest, value);
  }
  return largest;
}

}  // namespace

const NetworkLink* NetworkSnapshot::find(const std::string& name) const {
  const auto found = std::ranges::find(links, name, &NetworkLink::name);
  return found == links.end() ? nullptr : &*found;
}

const NetworkLink* NetworkSnapshot::find(int index) const {
  const auto found = std::ranges::find(links, index, &NetworkLink::index);
  return found == links.end() ? nullptr : &*found;
}

namespace {

using SnapshotSocket = std::unique_ptr<nl_sock, void (*)(nl_sock*)>;

Result<SnapshotSocket> connectSnapshot() {
  SnapshotSocket socket(nl_socket_alloc(), nl_socket_free);
  if (socket == nullptr) return errorf(Code::kInternal, "no memory for a netlink socket");
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0) {
    return errorf(Code::kIo, "connect over netlink: {}", nl_geterror(error));
  }
  return socket;
}

Status listAddresses(const SnapshotSocket& socket, NetworkSnapshot& network) {
  RETURN_IF_ERROR(list(socket.get(), RTM_GETLINK, AF_UNSPEC, "network interfaces",
                       [&](nlmsghdr* header) { addLink(network.links, header); }));
  return list(socket.get(), RTM_GETADDR, AF_UNSPEC, "addresses",
              [&](nlmsghdr* header) { addAddress(network.links, header); });
}

}  // namespace

Result<NetworkSnapshot> readAddresses() {
  ASSIGN_OR_RETURN(const SnapshotSocket socket, connectSnapshot());
  NetworkSnapshot network;
  RETURN_IF_ERROR(listAddresses(socket, network));
  return network;
}

Result<NetworkSnapshot> readNetwork() {
  ASSIGN_OR_RETURN(const SnapshotSocket socket, connectSnapshot());
  NetworkSnapshot network;
  RETURN_IF_ERROR(listAddresses(socket, network));
  // A kernel without rules has none to list.
  (void)list(socket.get(), RTM_GETRULE, AF_INET, "routing rules",
             [&](nlmsghdr* header) { addRule(network.rules, header); });
  RETURN_IF_ERROR(list(socket.get(), RTM_GETROUTE, AF_INET, "routes",
                       [&](nlmsghdr* header) { addRoute(network.routes, header); }));
  for (NetworkLink& link : network.links) {
    link.arpIgnore = setting(link.name, "arp_ignore");
    link.rpFilter = setting(link.name, "rp_filter");
  }
  return network;
}

}  // namespace faultline::fabric

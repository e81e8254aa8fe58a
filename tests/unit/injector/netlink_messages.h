#pragma once

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/message.h"

/// What a kernel tells of an interface, made by hand.
namespace faultline::netlink {

inline constexpr int kPort = 5;
inline constexpr int kOther = 6;
inline constexpr std::uint32_t kObject = 11;
inline constexpr std::uint32_t kGroup = 12;

inline std::uint32_t ip(const char* address) { return ::inet_addr(address); }

inline Message address(int ifindex, std::uint32_t valid = 0xFFFFFFFF, const char* text = "10.1.0.1",
                       std::uint32_t flags = IFA_F_PERMANENT) {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = 24;
  header.ifa_index = static_cast<std::uint32_t>(ifindex);
  header.ifa_flags = IFA_F_PERMANENT;
  Message message(RTM_NEWADDR, 0, header);
  message.put(IFA_LOCAL, ip(text)).put(IFA_ADDRESS, ip(text));
  message.putString(IFA_LABEL, "rail0").put(IFA_FLAGS, flags);
  const ifa_cacheinfo lifetime{valid, valid, 7, 8};
  message.put(IFA_CACHEINFO, &lifetime, sizeof lifetime);
  return message;
}

inline Message nexthop(int ifindex) {
  nhmsg header{};
  header.nh_family = AF_INET;
  header.nh_scope = RT_SCOPE_LINK;
  Message message(RTM_NEWNEXTHOP, 0, header);
  message.put(NHA_ID, kObject).put(NHA_OIF, static_cast<std::uint32_t>(ifindex));
  message.put(NHA_GATEWAY, ip("10.1.0.2"));
  return message;
}

inline Message address6(const char* text, std::uint32_t flags, std::uint8_t protocol = 0,
                        std::uint32_t priority = 0) {
  in6_addr binary{};
  ::inet_pton(AF_INET6, text, &binary);
  ifaddrmsg header{};
  header.ifa_family = AF_INET6;
  header.ifa_prefixlen = 64;
  header.ifa_scope = IN6_IS_ADDR_LINKLOCAL(&binary) ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  header.ifa_index = kPort;
  Message message(RTM_NEWADDR, 0, header);
  message.put(IFA_ADDRESS, &binary, sizeof binary).put(IFA_FLAGS, flags);
  if (priority != 0) message.put(IFA_RT_PRIORITY, priority);
  if (protocol != 0) message.put(IFA_PROTO, protocol);
  return message;
}

/// The second member has weight 4, the others 1.
inline Message group(const std::vector<std::uint32_t>& ids = {kObject, 99}) {
  std::vector<nexthop_grp> members;
  for (const std::uint32_t id : ids) {
    members.push_back({id, static_cast<std::uint8_t>(members.size() == 1 ? 3 : 0), 0, 0});
  }
  Message message(RTM_NEWNEXTHOP, 0, nhmsg{});
  message.put(NHA_ID, kGroup);
  message.put(NHA_GROUP, members.data(), members.size() * sizeof(nexthop_grp));
  message.put(NHA_GROUP_TYPE, std::uint16_t{NEXTHOP_GRP_TYPE_MPATH});
  return message;
}

inline rtmsg routeHeader() {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = 16;
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_type = RTN_UNICAST;
  header.rtm_flags = RTNH_F_LINKDOWN;
  return header;
}

inline Message route(int ifindex) {
  Message message(RTM_NEWROUTE, 0, routeHeader());
  message.put(RTA_DST, ip("10.90.0.0")).put(RTA_OIF, static_cast<std::uint32_t>(ifindex));
  message.put(RTA_GATEWAY, ip("10.1.0.2"));
  rta_cacheinfo life{};
  life.rta_expires = 3000;  // hundredths of seconds
  message.put(RTA_CACHEINFO, &life, sizeof life);
  return message;
}

inline Message multipath(std::initializer_list<int> interfaces) {
  Message message(RTM_NEWROUTE, 0, routeHeader());
  message.put(RTA_DST, ip("10.94.0.0"));
  std::vector<rtnexthop> legs;
  for (const int ifindex : interfaces) {
    legs.push_back({sizeof(rtnexthop), RTNH_F_DEAD | RTNH_F_ONLINK, 2, ifindex});
  }
  message.put(RTA_MULTIPATH, legs.data(), legs.size() * sizeof(rtnexthop));
  return message;
}

inline Message routeByObject(std::uint32_t id) {
  Message message(RTM_NEWROUTE, 0, routeHeader());
  message.put(RTA_DST, ip("10.95.0.0")).put(RTA_NH_ID, id);
  message.put(RTA_OIF, std::uint32_t{kPort}).put(RTA_GATEWAY, ip("10.1.0.2"));
  return message;
}

inline Message neighbour(int ifindex, std::uint16_t state, std::uint8_t flags = 0) {
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = ifindex;
  header.ndm_state = state;
  header.ndm_flags = flags;
  Message message(RTM_NEWNEIGH, 0, header);
  message.put(NDA_DST, ip("10.1.0.2"));
  return message;
}

inline std::vector<Message> everything() {
  std::vector<Message> all;
  all.push_back(address(kPort));
  all.push_back(nexthop(kPort));
  all.push_back(group());
  all.push_back(route(kPort));
  all.push_back(multipath({kOther, kPort}));
  all.push_back(routeByObject(kGroup));
  all.push_back(neighbour(kPort, NUD_PERMANENT));
  all.push_back(neighbour(kPort, NUD_NONE, NTF_PROXY));
  return all;
}

/// What the kernel's messages become.
inline std::vector<ConfigurationEntry> entriesOf(const std::vector<Message>& messages) {
  Belongings of{.ifindex = kPort};
  std::vector<ConfigurationEntry> entries;
  for (const Message& message : messages) {
    if (auto entry = entryOf(nlmsg_hdr(message.get()), of)) entries.push_back(*std::move(entry));
  }
  return entries;
}

/// `nexthops`: identifiers that are known to be the interface's.
inline std::optional<ConfigurationEntry> entry(const Message& message,
                                               std::set<std::uint32_t> nexthops = {}) {
  Belongings of{.ifindex = kPort, .nexthops = std::move(nexthops)};
  return entryOf(nlmsg_hdr(message.get()), of);
}

}  // namespace faultline::netlink

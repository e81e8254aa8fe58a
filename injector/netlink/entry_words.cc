#include "injector/netlink/entry_words.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>

#include "injector/netlink/message.h"
#include "injector/netlink/request_bytes.h"
#include "injector/netlink/route_legs.h"

namespace faultline::netlink {
namespace {

std::string nameOf(int ifindex, const InterfaceNames& names) {
  const auto found = names.find(ifindex);
  return found == names.end() ? fmt::format("if{}", ifindex) : found->second;
}

/// "" where there is none, or not one of the family.
std::string addressText(int family, const void* data, int size) {
  const int needed = family == AF_INET ? int{sizeof(in_addr)} : int{sizeof(in6_addr)};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (size < needed || ::inet_ntop(family, data, text.data(), text.size()) == nullptr) return "";
  return text.data();
}
std::string addressText(int family, const nlattr* attribute) {
  return attribute == nullptr ? "" : addressText(family, nla_data(attribute), nla_len(attribute));
}

void add(std::string& words, std::string_view word, const std::string& value) {
  if (!value.empty()) words += fmt::format(" {} {}", word, value);
}

std::string addressWords(const ConfigurationEntry& entry, const InterfaceNames& names) {
  const auto header = headerOf<ifaddrmsg>(entry.request.bytes);
  const RequestMessage message(RTM_NEWADDR, entry.request.bytes);
  const Attributes<IFA_MAX> found(message.get(), sizeof header);
  const std::string far = addressText(header.ifa_family, found[IFA_ADDRESS]);
  const std::string near =
      found[IFA_LOCAL] == nullptr ? far : addressText(header.ifa_family, found[IFA_LOCAL]);
  std::string words = "address " + near;
  if (far != near) words += " peer " + far;
  words += fmt::format("/{}", header.ifa_prefixlen);
  add(words, "dev", nameOf(static_cast<int>(header.ifa_index), names));
  return words;
}

/// `via` and `dev` of one leg.
std::string legWords(int family, const RouteLeg& leg, const InterfaceNames& names) {
  std::string words;
  std::string attributes = leg.bytes;
  forEachAttribute(attributes, RTNH_ALIGN(sizeof(rtnexthop)), [&](const nlattr* one) {
    if (nla_type(one) == RTA_GATEWAY) add(words, "via", addressText(family, one));
    if (nla_type(one) != RTA_VIA || nla_len(one) < int{sizeof(rtvia)}) return;
    const auto* const via = static_cast<const rtvia*>(nla_data(one));
    const int size = nla_len(one) - int{sizeof(rtvia)};
    add(words, "via inet6", addressText(via->rtvia_family, via->rtvia_addr, size));
  });
  add(words, "dev", nameOf(leg.ifindex, names));
  return words;
}

std::string typeWord(int type) {
  constexpr std::array<std::string_view, RTN_MAX + 1> kTypes{
      "", "", "local ", "broadcast ", "anycast ", "multicast "};
  return type <= RTN_MAX ? std::string(kTypes[static_cast<std::size_t>(type)]) : "";
}

std::string tableWord(std::uint32_t table) {
  return table == RT_TABLE_LOCAL ? "local" : fmt::format("{}", table);
}

std::string routeWords(const ConfigurationEntry& entry, const InterfaceNames& names) {
  const auto header = headerOf<rtmsg>(entry.request.bytes);
  const RequestMessage message(RTM_NEWROUTE, entry.request.bytes);
  const Attributes<RTA_MAX> found(message.get(), sizeof header);
  const int family = header.rtm_family;
  const std::string to = addressText(family, found[RTA_DST]);
  std::string words = "route " + typeWord(header.rtm_type);
  words += to.empty() ? "default" : fmt::format("{}/{}", to, header.rtm_dst_len);
  const std::string from = addressText(family, found[RTA_SRC]);
  if (!from.empty()) words += fmt::format(" from {}/{}", from, header.rtm_src_len);
  if (header.rtm_tos != 0) words += fmt::format(" tos {:#x}", header.rtm_tos);
  if (found[RTA_NH_ID] != nullptr) {
    words += fmt::format(" nhid {}", found.value<std::uint32_t>(RTA_NH_ID));
  }
  const std::vector<RouteLeg> legs = partsOf(entry).legs;
  if (legs.size() == 1) words += legWords(family, legs.front(), names);
  const auto table = found.value<std::uint32_t>(RTA_TABLE, header.rtm_table);
  if (table != RT_TABLE_MAIN) add(words, "table", tableWord(table));
  add(words, "src", addressText(family, found[RTA_PREFSRC]));
  const auto metric = found.value<std::uint32_t>(RTA_PRIORITY);
  if (metric != 0) words += fmt::format(" metric {}", metric);
  if (legs.size() == 1 && (header.rtm_flags & RTNH_F_ONLINK) != 0) words += " onlink";
  for (const RouteLeg& leg : legs) {
    if (legs.size() == 1) break;
    const auto hop = headerOf<rtnexthop>(leg.bytes);
    words += fmt::format(" nexthop{} weight {}", legWords(family, leg, names), hop.rtnh_hops + 1);
  }
  return words;
}

std::string nexthopWords(const ConfigurationEntry& entry, const InterfaceNames& names) {
  const auto header = headerOf<nhmsg>(entry.request.bytes);
  const RequestMessage message(RTM_NEWNEXTHOP, entry.request.bytes);
  const Attributes<NHA_MAX> found(message.get(), sizeof header);
  std::string words = fmt::format("nexthop id {}", nexthopId(entry));
  std::string group;
  for (const GroupMember& member : membersOf(entry)) {
    const int weight = headerOf<nexthop_grp>(member.bytes).weight;
    group += fmt::format("{}{}", group.empty() ? "" : "/", member.id);
    if (weight != 0) group += fmt::format(",{}", weight + 1);
  }
  add(words, "group", group);
  if (!group.empty()) return words;
  add(words, "via", addressText(header.nh_family, found[NHA_GATEWAY]));
  add(words, "dev", nameOf(found.value<int>(NHA_OIF), names));
  if ((header.nh_flags & RTNH_F_ONLINK) != 0) words += " onlink";
  return words;
}

std::string neighbourWords(const ConfigurationEntry& entry, const InterfaceNames& names) {
  const auto header = headerOf<ndmsg>(entry.request.bytes);
  const RequestMessage message(RTM_NEWNEIGH, entry.request.bytes);
  const Attributes<NDA_MAX> found(message.get(), sizeof header);
  std::string words = "neighbour";
  if ((header.ndm_flags & NTF_PROXY) != 0) words += " proxy";
  words += " " + addressText(header.ndm_family, found[NDA_DST]);
  std::string link;
  for (int i = 0; found[NDA_LLADDR] != nullptr && i < nla_len(found[NDA_LLADDR]); ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(nla_data(found[NDA_LLADDR]));
    link += fmt::format("{}{:02x}", i == 0 ? "" : ":", bytes[i]);
  }
  add(words, "lladdr", link);
  add(words, "dev", nameOf(header.ndm_ifindex, names));
  return words;
}

}  // namespace

std::string inWords(const ConfigurationEntry& entry, const InterfaceNames& names) {
  switch (entry.kind) {
    case EntryKind::kAddress:
      return addressWords(entry, names);
    case EntryKind::kNexthop:
      return nexthopWords(entry, names);
    case EntryKind::kRoute:
      return routeWords(entry, names);
    case EntryKind::kNeighbour:
      break;
  }
  return neighbourWords(entry, names);
}

}  // namespace faultline::netlink

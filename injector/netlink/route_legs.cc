#include "injector/netlink/route_legs.h"

#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>

#include "injector/netlink/message.h"
#include "injector/netlink/request_bytes.h"

namespace faultline::netlink {
namespace {

constexpr std::array kLegAttributes{RTA_GATEWAY, RTA_VIA, RTA_FLOW, RTA_ENCAP_TYPE, RTA_ENCAP};

bool isOfLegs(int type) {
  return type == RTA_OIF || type == RTA_MULTIPATH ||
         std::find(kLegAttributes.begin(), kLegAttributes.end(), type) != kLegAttributes.end();
}

/// The only leg of a route, as one of several would be written.
RouteLeg onlyLeg(const RequestMessage& message, unsigned flags) {
  const Attributes<RTA_MAX> found(message.get(), sizeof(rtmsg));
  rtnexthop hop{};
  hop.rtnh_ifindex = found.value<int>(RTA_OIF);
  hop.rtnh_flags = static_cast<unsigned char>(flags & RTNH_F_ONLINK);
  RequestBuilder leg(hop);
  for (const int attribute : kLegAttributes) leg.copy(found[attribute]);
  std::string bytes = leg.bytes();
  hop.rtnh_len = static_cast<unsigned short>(bytes.size());
  setHeader(bytes, hop);
  return {hop.rtnh_ifindex, bytes};
}

std::vector<RouteLeg> severalLegs(const nlattr* multipath) {
  std::vector<RouteLeg> legs;
  int left = nla_len(multipath);
  for (auto* leg = static_cast<const rtnexthop*>(nla_data(multipath));
       left >= int{sizeof *leg} && RTNH_OK(leg, left);
       left -= RTNH_ALIGN(leg->rtnh_len), leg = RTNH_NEXT(leg)) {
    legs.push_back({leg->rtnh_ifindex, {reinterpret_cast<const char*>(leg), leg->rtnh_len}});
  }
  return legs;
}

/// The request with those attributes of it for which `keep` says so.
template <typename Header, typename Keep>
RequestBuilder rebuilt(const std::string& request, const Header& header, Keep keep) {
  RequestBuilder builder(header);
  std::string copy = request;
  forEachAttribute(copy, NLMSG_ALIGN(sizeof header), [&](const nlattr* one) {
    if (keep(nla_type(one))) builder.copy(one);
  });
  return builder;
}

}  // namespace

bool RouteLeg::samePath(const RouteLeg& other) const {
  const auto withoutWeight = [](std::string leg) {
    auto hop = headerOf<rtnexthop>(leg);
    hop.rtnh_hops = 0;
    setHeader(leg, hop);
    return leg;
  };
  return withoutWeight(bytes) == withoutWeight(other.bytes);
}

std::vector<RouteLeg> RouteParts::legsOf(int ifindex) const {
  std::vector<RouteLeg> own;
  for (const RouteLeg& leg : legs) {
    if (leg.ifindex == ifindex) own.push_back(leg);
  }
  return own.empty() ? legs : own;
}

RouteParts partsOf(const ConfigurationEntry& route) {
  const RequestMessage message(RTM_NEWROUTE, route.request.bytes);
  const Attributes<RTA_MAX> found(message.get(), sizeof(rtmsg));
  auto header = headerOf<rtmsg>(route.request.bytes);
  RouteParts parts;
  if (found[RTA_MULTIPATH] != nullptr) {
    parts.legs = severalLegs(found[RTA_MULTIPATH]);
  } else if (found[RTA_NH_ID] == nullptr) {
    parts.legs.push_back(onlyLeg(message, header.rtm_flags));
  }
  header.rtm_flags = 0;
  parts.frame = rebuilt(route.request.bytes, header, [](int type) {
                  return !isOfLegs(type) && type != RTA_EXPIRES;
                }).bytes();
  return parts;
}

std::string destinationOf(const nlmsghdr* message) {
  const Attributes<RTA_MAX> found(message, sizeof(rtmsg));
  const auto* const told = static_cast<const rtmsg*>(nlmsg_data(message));
  rtmsg header{};
  header.rtm_family = told->rtm_family;
  header.rtm_dst_len = told->rtm_dst_len;
  header.rtm_src_len = told->rtm_src_len;
  header.rtm_tos = told->rtm_tos;
  RequestBuilder key(header);
  for (const int attribute : {RTA_TABLE, RTA_DST, RTA_SRC, RTA_PRIORITY}) {
    key.copy(found[attribute]);
  }
  return key.bytes();
}

std::string destinationOf(const ConfigurationEntry& route) {
  return destinationOf(RequestMessage(RTM_NEWROUTE, route.request.bytes).get());
}

std::string removalOf(const ConfigurationEntry& route) {
  const std::vector<RouteLeg> legs = partsOf(route).legs;
  if (legs.size() != 1 || legs.front().ifindex == 0) return route.request.bytes;
  // By a single leg that is not in a list the kernel takes any route that begins with it.
  auto header = headerOf<rtmsg>(route.request.bytes);
  header.rtm_flags = 0;
  RequestBuilder builder =
      rebuilt(route.request.bytes, header, [](int type) { return !isOfLegs(type); });
  std::string leg = legs.front().bytes;
  leg.resize(RTNH_ALIGN(leg.size()));
  builder.put(RTA_MULTIPATH, leg.data(), leg.size());
  return builder.bytes();
}

bool hitsFirst(const std::vector<RouteLeg>& legs, const std::vector<RouteLeg>& others) {
  return !others.empty() && others.size() <= legs.size() &&
         std::equal(others.begin(), others.end(), legs.begin(),
                    [](const RouteLeg& one, const RouteLeg& other) { return one.samePath(other); });
}

std::string withLegs(const ConfigurationEntry& route, const std::vector<RouteLeg>& legs) {
  auto header = headerOf<rtmsg>(route.request.bytes);
  const auto hop = headerOf<rtnexthop>(legs.front().bytes);
  header.rtm_flags = legs.size() == 1 ? hop.rtnh_flags & RTNH_F_ONLINK : 0;
  RequestBuilder builder =
      rebuilt(route.request.bytes, header, [](int type) { return !isOfLegs(type); });
  if (legs.size() == 1) {
    builder.put(RTA_OIF, hop.rtnh_ifindex);
    std::string leg = legs.front().bytes;
    forEachAttribute(leg, RTNH_ALIGN(sizeof hop), [&](const nlattr* one) { builder.copy(one); });
    return builder.bytes();
  }
  std::string all;
  for (const RouteLeg& leg : legs) {
    all += leg.bytes;
    all.resize(RTNH_ALIGN(all.size()));
  }
  builder.put(RTA_MULTIPATH, all.data(), all.size());
  return builder.bytes();
}

std::uint32_t nexthopId(const ConfigurationEntry& nexthop) {
  const RequestMessage message(RTM_NEWNEXTHOP, nexthop.request.bytes);
  return Attributes<NHA_MAX>(message.get(), sizeof(nhmsg)).value<std::uint32_t>(NHA_ID);
}

std::vector<GroupMember> membersOf(const ConfigurationEntry& nexthop) {
  const RequestMessage message(RTM_NEWNEXTHOP, nexthop.request.bytes);
  const Attributes<NHA_MAX> found(message.get(), sizeof(nhmsg));
  std::vector<GroupMember> members;
  if (found[NHA_GROUP] == nullptr) return members;
  const std::string all(static_cast<const char*>(nla_data(found[NHA_GROUP])),
                        static_cast<std::size_t>(nla_len(found[NHA_GROUP])));
  for (std::size_t at = 0; at + sizeof(nexthop_grp) <= all.size(); at += sizeof(nexthop_grp)) {
    const std::string one = all.substr(at, sizeof(nexthop_grp));
    members.push_back({headerOf<nexthop_grp>(one).id, one});
  }
  return members;
}

std::string withMembers(const ConfigurationEntry& group, const std::vector<GroupMember>& members) {
  std::string all;
  for (const GroupMember& member : members) all += member.bytes;
  const auto header = headerOf<nhmsg>(group.request.bytes);
  RequestBuilder builder =
      rebuilt(group.request.bytes, header, [](int type) { return type != NHA_GROUP; });
  builder.put(NHA_GROUP, all.data(), all.size());
  return builder.bytes();
}

}  // namespace faultline::netlink

#include "injector/netlink/configuration_entry.h"

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

constexpr std::array kKindNames{
    EnumName<EntryKind>{EntryKind::kAddress, "address"},
    EnumName<EntryKind>{EntryKind::kNexthop, "nexthop"},
    EnumName<EntryKind>{EntryKind::kRoute, "route"},
    EnumName<EntryKind>{EntryKind::kNeighbour, "neighbour"},
};
constexpr std::array kPlaceNames{
    EnumName<RoutePlace>{RoutePlace::kAlone, "alone"},
    EnumName<RoutePlace>{RoutePlace::kBefore, "before"},
    EnumName<RoutePlace>{RoutePlace::kBehind, "behind"},
};

// Lifetimes of addresses in seconds.
constexpr std::uint32_t kForever = 0xFFFFFFFF;
// What the kernel tells the rest of a route's life in: USER_HZ.
constexpr int kTicksPerSecond = 100;
// Of an address's flags, those that are not a state; IPv4 ignores that it is a secondary one, and
// IPv6 that it turned out to be a duplicate, when it is added: these two are to be known.
constexpr std::uint32_t kAddressFlags = IFA_F_NODAD | IFA_F_OPTIMISTIC | IFA_F_HOMEADDRESS |
                                        IFA_F_MANAGETEMPADDR | IFA_F_NOPREFIXROUTE |
                                        IFA_F_MCAUTOJOIN | IFA_F_SECONDARY | IFA_F_DADFAILED;
constexpr std::uint8_t kNeighbourFlags = NTF_PROXY | NTF_ROUTER | NTF_EXT_LEARNED;

bool isIp(int family) { return family == AF_INET || family == AF_INET6; }

template <typename Header>
Header messageHeader(const nlmsghdr* message) {
  Header header{};
  const auto size = static_cast<std::size_t>(std::max(nlmsg_datalen(message), 0));
  __builtin_memcpy(&header, nlmsg_data(message), std::min(sizeof header, size));
  return header;
}

std::optional<std::string> addressRequest(const nlmsghdr* message, Belongings& of) {
  auto header = messageHeader<ifaddrmsg>(message);
  const Attributes<IFA_MAX> found(message, sizeof header);
  const std::uint32_t flags = found.value<std::uint32_t>(IFA_FLAGS, header.ifa_flags);
  if (!isIp(header.ifa_family) || static_cast<int>(header.ifa_index) != of.ifindex) return {};
  if (header.ifa_family == AF_INET6) {
    const bool own = found.value<std::uint8_t>(IFA_PROTO) == IFAPROT_KERNEL_LL ||
                     (header.ifa_scope == RT_SCOPE_LINK && (flags & IFA_F_STABLE_PRIVACY) != 0);
    if (own || (flags & IFA_F_TEMPORARY) != 0) return {};
  }
  if (header.ifa_family == AF_INET) of.sources.insert(bytesOf(found[IFA_LOCAL]));
  header.ifa_flags = 0;
  auto lifetime = found.value<ifa_cacheinfo>(IFA_CACHEINFO, {kForever, kForever, 0, 0});
  lifetime.cstamp = lifetime.tstamp = 0;
  RequestBuilder request(header);
  for (const int attribute :
       {IFA_ADDRESS, IFA_LOCAL, IFA_BROADCAST, IFA_LABEL, IFA_RT_PRIORITY, IFA_PROTO}) {
    if (attribute == IFA_LABEL && found.text(attribute) == of.name) continue;
    request.copy(found[attribute]);
  }
  request.put(IFA_FLAGS, std::uint32_t{flags & kAddressFlags});
  request.put(IFA_CACHEINFO, lifetime);
  return request.bytes();
}

/// Of a resilient group, what one may ask for; how long it has been unbalanced is a state.
void copyResilience(const nlattr* told, RequestBuilder& request) {
  if (told == nullptr) return;
  const Attributes<NHA_RES_GROUP_MAX> found(told);
  std::string nested;
  for (const int attribute :
       {NHA_RES_GROUP_BUCKETS, NHA_RES_GROUP_IDLE_TIMER, NHA_RES_GROUP_UNBALANCED_TIMER}) {
    if (found[attribute] == nullptr) continue;
    nested.append(reinterpret_cast<const char*>(found[attribute]), found[attribute]->nla_len);
    nested.resize(NLMSG_ALIGN(nested.size()));
  }
  request.put(NHA_RES_GROUP | NLA_F_NESTED, nested.data(), nested.size());
}

bool hasMember(const nlattr* group, const std::set<std::uint32_t>& nexthops) {
  const auto* member = static_cast<const nexthop_grp*>(nla_data(group));
  const auto* const end = member + static_cast<std::size_t>(nla_len(group)) / sizeof *member;
  return std::any_of(member, end,
                     [&](const nexthop_grp& one) { return nexthops.contains(one.id); });
}

std::optional<std::string> nexthopRequest(const nlmsghdr* message, Belongings& of) {
  auto header = messageHeader<nhmsg>(message);
  const Attributes<NHA_MAX> found(message, sizeof header);
  const nlattr* const group = found[NHA_GROUP];
  const bool belongs =
      group != nullptr ? hasMember(group, of.nexthops) : found.value<int>(NHA_OIF) == of.ifindex;
  const auto id = found.value<std::uint32_t>(NHA_ID);
  if (id == 0 || (!belongs && !of.nexthops.contains(id))) return {};
  of.nexthops.insert(id);
  header.nh_scope = 0;
  header.resvd = 0;
  header.nh_flags &= RTNH_F_ONLINK;
  RequestBuilder request(header);
  for (const int attribute :
       {NHA_ID, NHA_GROUP, NHA_GROUP_TYPE, NHA_OIF, NHA_GATEWAY, NHA_ENCAP_TYPE, NHA_ENCAP}) {
    request.copy(found[attribute]);
  }
  copyResilience(found[NHA_RES_GROUP], request);
  return request.bytes();
}

/// The legs of a multipath route without their states; nothing where they are not well-formed.
/// `belongs`: whether one of them is of the interface.
std::optional<std::string> legsWithoutStates(const nlattr* multipath, int ifindex, bool& belongs) {
  std::string legs(static_cast<const char*>(nla_data(multipath)),
                   static_cast<std::size_t>(nla_len(multipath)));
  int left = static_cast<int>(legs.size());
  for (auto* leg = reinterpret_cast<rtnexthop*>(legs.data()); left > 0;
       left -= RTNH_ALIGN(leg->rtnh_len), leg = RTNH_NEXT(leg)) {
    if (!RTNH_OK(leg, left) || left < static_cast<int>(sizeof *leg)) return {};
    leg->rtnh_flags &= RTNH_F_ONLINK;
    belongs = belongs || leg->rtnh_ifindex == ifindex;
  }
  return legs;
}

std::optional<std::string> routeRequest(const nlmsghdr* message, const Belongings& of) {
  auto header = messageHeader<rtmsg>(message);
  const bool by_itself = header.rtm_protocol == RTPROT_KERNEL ||
                         header.rtm_protocol == RTPROT_REDIRECT ||
                         header.rtm_protocol == RTPROT_RA || (header.rtm_flags & RTM_F_CLONED) != 0;
  if (!isIp(header.rtm_family) || by_itself) return {};
  const Attributes<RTA_MAX> found(message, sizeof header);
  const bool by_object = found[RTA_NH_ID] != nullptr;
  bool belongs = by_object ? of.nexthops.contains(found.value<std::uint32_t>(RTA_NH_ID))
                           : found.value<int>(RTA_OIF) == of.ifindex;
  std::optional<std::string> legs;
  if (!by_object && found[RTA_MULTIPATH] != nullptr) {
    legs = legsWithoutStates(found[RTA_MULTIPATH], of.ifindex, belongs);
    if (!legs) return {};
  }
  const std::string source = header.rtm_family == AF_INET ? bytesOf(found[RTA_PREFSRC]) : "";
  belongs = belongs || (!source.empty() && of.sources.contains(source));
  if (!belongs && of.frames.empty()) return {};
  // With an object's number the kernel refuses what it tells of the object itself.
  header.rtm_flags &= by_object ? 0U : static_cast<unsigned>(RTNH_F_ONLINK);
  RequestBuilder request(header);
  for (const int attribute :
       {RTA_TABLE, RTA_DST, RTA_SRC, RTA_PREFSRC, RTA_PRIORITY, RTA_METRICS, RTA_PREF}) {
    request.copy(found[attribute]);
  }
  if (by_object) {
    request.copy(found[RTA_NH_ID]);
  } else {
    for (const int attribute :
         {RTA_OIF, RTA_GATEWAY, RTA_VIA, RTA_FLOW, RTA_ENCAP_TYPE, RTA_ENCAP}) {
      request.copy(found[attribute]);
    }
    if (legs) request.put(RTA_MULTIPATH, legs->data(), legs->size());
  }
  const auto ticks = found.value<rta_cacheinfo>(RTA_CACHEINFO).rta_expires;
  request.copy(found[RTA_EXPIRES]);
  if (found[RTA_EXPIRES] == nullptr && ticks > 0) {
    request.put(RTA_EXPIRES, static_cast<std::uint32_t>(ticks / kTicksPerSecond));
  }
  if (!belongs) {
    const RouteParts parts = partsOf({EntryKind::kRoute, {request.bytes()}, RoutePlace::kAlone});
    if (!of.frames.contains(parts.frame)) return {};
  }
  return request.bytes();
}

std::optional<std::string> neighbourRequest(const nlmsghdr* message, const Belongings& of) {
  auto header = messageHeader<ndmsg>(message);
  const bool proxy = (header.ndm_flags & NTF_PROXY) != 0;
  const bool made = proxy || (header.ndm_state & NUD_PERMANENT) != 0;
  if (!isIp(header.ndm_family) || header.ndm_ifindex != of.ifindex || !made) return {};
  header.ndm_state = proxy ? NUD_NONE : NUD_PERMANENT;
  header.ndm_flags &= kNeighbourFlags;
  const Attributes<NDA_MAX> found(message, sizeof header);
  if (found[NDA_DST] == nullptr) return {};
  RequestBuilder request(header);
  for (const int attribute : {NDA_DST, NDA_LLADDR, NDA_PROTOCOL}) request.copy(found[attribute]);
  return request.bytes();
}

}  // namespace

std::string RequestBytes::hex() const {
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    fmt::format_to(std::back_inserter(digits), "{:02x}", static_cast<unsigned char>(byte));
  }
  return digits;
}

Result<RequestBytes> RequestBytes::fromHex(std::string_view text) {
  const auto valueOf = [](char digit) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t value = kDigits.find(digit);
    return value == std::string_view::npos ? -1 : static_cast<int>(value);
  };
  constexpr int kBase = 16;
  RequestBytes request;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = valueOf(text[i]);
    const int low = valueOf(text[i + 1]);
    if (high < 0 || low < 0) break;
    request.bytes += static_cast<char>(high * kBase + low);
  }
  if (2 * request.bytes.size() == text.size()) return request;
  return errorf(Code::kInvalidArgument, "it is not pairs of hexadecimal digits 0-9 and a-f");
}

std::span<const EnumName<EntryKind>> namesOf(EntryKind /*which*/) { return kKindNames; }
std::span<const EnumName<RoutePlace>> namesOf(RoutePlace /*which*/) { return kPlaceNames; }

int familyOf(const ConfigurationEntry& entry) {
  // The first byte of each family's structure.
  return entry.request.bytes.empty() ? AF_UNSPEC
                                     : static_cast<unsigned char>(entry.request.bytes.front());
}

int messageType(EntryKind kind) {
  switch (kind) {
    case EntryKind::kAddress:
      return RTM_NEWADDR;
    case EntryKind::kNexthop:
      return RTM_NEWNEXTHOP;
    case EntryKind::kRoute:
      return RTM_NEWROUTE;
    case EntryKind::kNeighbour:
      break;
  }
  return RTM_NEWNEIGH;
}

std::optional<ConfigurationEntry> entryOf(const nlmsghdr* message, Belongings& of) {
  ConfigurationEntry entry;
  std::optional<std::string> request;
  switch (message->nlmsg_type) {
    case RTM_NEWADDR:
      entry.kind = EntryKind::kAddress;
      request = addressRequest(message, of);
      break;
    case RTM_NEWNEXTHOP:
      entry.kind = EntryKind::kNexthop;
      request = nexthopRequest(message, of);
      break;
    case RTM_NEWROUTE:
      entry.kind = EntryKind::kRoute;
      request = routeRequest(message, of);
      break;
    case RTM_NEWNEIGH:
      entry.kind = EntryKind::kNeighbour;
      request = neighbourRequest(message, of);
      break;
    default:
      break;
  }
  if (!request) return {};
  entry.request.bytes = *std::move(request);
  return entry;
}

Status checkEntry(const ConfigurationEntry& entry, int ifindex) {
  const std::string& bytes = entry.request.bytes;
  const RequestMessage message(messageType(entry.kind), bytes);
  Belongings of{.ifindex = ifindex};
  // Which identifiers and addresses are the interface's does not stand in the entry itself.
  if (entry.kind == EntryKind::kNexthop) {
    const Attributes<NHA_MAX> found(message.get(), sizeof(nhmsg));
    if (found[NHA_GROUP] != nullptr && nla_len(found[NHA_GROUP]) >= int{sizeof(nexthop_grp)}) {
      of.nexthops.insert(static_cast<const nexthop_grp*>(nla_data(found[NHA_GROUP]))->id);
    }
  } else if (entry.kind == EntryKind::kRoute) {
    const Attributes<RTA_MAX> found(message.get(), sizeof(rtmsg));
    if (found[RTA_NH_ID] != nullptr) of.nexthops.insert(found.value<std::uint32_t>(RTA_NH_ID));
    of.sources.insert(bytesOf(found[RTA_PREFSRC]));
  }
  const auto made = entryOf(message.get(), of);
  if (made && made->request == entry.request) return okStatus();
  return errorf(Code::kInvalidArgument, "it is no {} of interface {}", enumName(entry.kind),
                ifindex);
}

void rebindEntry(ConfigurationEntry& entry, int from, int to) {
  std::string& bytes = entry.request.bytes;
  const auto rebindAttribute = [&](std::size_t offset, int type) {
    forEachAttribute(bytes, offset, [&](nlattr* one) {
      if (nla_type(one) != type || nla_len(one) < int{sizeof to}) return;
      __builtin_memcpy(nla_data(one), &to, sizeof to);
    });
  };
  switch (entry.kind) {
    case EntryKind::kAddress: {
      auto header = headerOf<ifaddrmsg>(bytes);
      header.ifa_index = static_cast<std::uint32_t>(to);
      return setHeader(bytes, header);
    }
    case EntryKind::kNexthop:
      return rebindAttribute(NLMSG_ALIGN(sizeof(nhmsg)), NHA_OIF);
    case EntryKind::kRoute:
      rebindAttribute(NLMSG_ALIGN(sizeof(rtmsg)), RTA_OIF);
      return forEachAttribute(bytes, NLMSG_ALIGN(sizeof(rtmsg)), [&](nlattr* one) {
        if (nla_type(one) != RTA_MULTIPATH) return;
        int left = nla_len(one);
        for (auto* leg = static_cast<rtnexthop*>(nla_data(one));
             left >= int{sizeof *leg} && RTNH_OK(leg, left);
             left -= RTNH_ALIGN(leg->rtnh_len), leg = RTNH_NEXT(leg)) {
          if (leg->rtnh_ifindex == from) leg->rtnh_ifindex = to;
        }
      });
    case EntryKind::kNeighbour: {
      auto header = headerOf<ndmsg>(bytes);
      header.ndm_ifindex = to;
      return setHeader(bytes, header);
    }
  }
}

std::optional<ConfigurationEntry> afterTime(ConfigurationEntry entry, Duration passed) {
  const std::int64_t seconds =
      std::max<std::int64_t>(0, duration_cast<std::chrono::seconds>(passed).count());
  bool over = false;
  const auto left = [&](std::uint32_t lifetime) {
    if (lifetime == kForever) return lifetime;
    return static_cast<std::uint32_t>(std::max<std::int64_t>(0, lifetime - seconds));
  };
  if (entry.kind == EntryKind::kAddress) {
    forEachAttribute(entry.request.bytes, NLMSG_ALIGN(sizeof(ifaddrmsg)), [&](nlattr* one) {
      ifa_cacheinfo lifetime{};
      if (nla_type(one) != IFA_CACHEINFO || nla_len(one) < int{sizeof lifetime}) return;
      __builtin_memcpy(&lifetime, nla_data(one), sizeof lifetime);
      lifetime.ifa_prefered = left(lifetime.ifa_prefered);
      lifetime.ifa_valid = left(lifetime.ifa_valid);
      over = lifetime.ifa_valid == 0;
      __builtin_memcpy(nla_data(one), &lifetime, sizeof lifetime);
    });
  } else if (entry.kind == EntryKind::kRoute) {
    forEachAttribute(entry.request.bytes, NLMSG_ALIGN(sizeof(rtmsg)), [&](nlattr* one) {
      std::uint32_t expires = 0;
      if (nla_type(one) != RTA_EXPIRES || nla_len(one) < int{sizeof expires}) return;
      __builtin_memcpy(&expires, nla_data(one), sizeof expires);
      expires = left(expires);
      over = expires == 0;
      __builtin_memcpy(nla_data(one), &expires, sizeof expires);
    });
  }
  if (over) return {};
  return entry;
}

}  // namespace faultline::netlink

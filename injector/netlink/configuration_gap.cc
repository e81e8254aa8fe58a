#include "injector/netlink/configuration_gap.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "injector/netlink/message.h"
#include "injector/netlink/request_bytes.h"

namespace faultline::netlink {
namespace {

bool isGroup(const ConfigurationEntry& entry) {
  return entry.kind == EntryKind::kNexthop && !membersOf(entry).empty();
}

void appendBytes(std::string& key, const nlattr* attribute) { key += '/' + bytesOf(attribute); }

/// The interface's own address, also where there is another one at the other end.
std::string localOf(const ConfigurationEntry& address) {
  const RequestMessage message(RTM_NEWADDR, address.request.bytes);
  const Attributes<IFA_MAX> found(message.get(), sizeof(ifaddrmsg));
  return bytesOf(found[found[IFA_LOCAL] != nullptr ? IFA_LOCAL : IFA_ADDRESS]);
}

/// What the kernel itself tells things of a kind apart by. Not for groups and routes.
std::string keyOf(const ConfigurationEntry& entry) {
  const RequestMessage message(messageType(entry.kind), entry.request.bytes);
  std::string key(enumName(entry.kind));
  if (entry.kind == EntryKind::kAddress) {
    const auto header = headerOf<ifaddrmsg>(entry.request.bytes);
    const Attributes<IFA_MAX> found(message.get(), sizeof header);
    key += fmt::format(" {} {}", header.ifa_family, header.ifa_prefixlen);
    appendBytes(key, found[IFA_LOCAL]);
    appendBytes(key, found[IFA_ADDRESS]);
  } else if (entry.kind == EntryKind::kNeighbour) {
    const auto header = headerOf<ndmsg>(entry.request.bytes);
    const Attributes<NDA_MAX> found(message.get(), sizeof header);
    key += fmt::format(" {} {}", header.ndm_family, header.ndm_flags & NTF_PROXY);
    appendBytes(key, found[NDA_DST]);
  } else {
    key += entry.request.bytes;
  }
  return key;
}

std::uint32_t flagsOf(const ConfigurationEntry& address) {
  const RequestMessage message(RTM_NEWADDR, address.request.bytes);
  return Attributes<IFA_MAX>(message.get(), sizeof(ifaddrmsg)).value<std::uint32_t>(IFA_FLAGS);
}

struct Network {
  std::string prefix;  ///< its bits, and how many
  std::uint32_t priority;
};

Network networkOf(const ConfigurationEntry& address) {
  const auto header = headerOf<ifaddrmsg>(address.request.bytes);
  const RequestMessage message(RTM_NEWADDR, address.request.bytes);
  const Attributes<IFA_MAX> found(message.get(), sizeof header);
  auto bits = found.value<in6_addr>(IFA_ADDRESS);
  constexpr int kBitsOfByte = 8;
  for (int bit = header.ifa_prefixlen; bit < kBitsOfByte * int{sizeof bits}; ++bit) {
    bits.s6_addr[bit / kBitsOfByte] &= static_cast<std::uint8_t>(
        ~(1U << static_cast<unsigned>(kBitsOfByte - 1 - bit % kBitsOfByte)));
  }
  std::string prefix(reinterpret_cast<const char*>(&bits), sizeof bits);
  return {prefix + static_cast<char>(header.ifa_prefixlen),
          found.value<std::uint32_t>(IFA_RT_PRIORITY)};
}

std::string withFlags(std::string address, std::uint32_t flags) {
  forEachAttribute(address, NLMSG_ALIGN(sizeof(ifaddrmsg)), [&](nlattr* one) {
    if (nla_type(one) == IFA_FLAGS && nla_len(one) >= int{sizeof flags}) {
      __builtin_memcpy(nla_data(one), &flags, sizeof flags);
    }
  });
  return address;
}

/// At once, without looking for somebody else who has it: it was there before, and nobody waits.
/// One that had turned out to be a duplicate turns out to be one again.
Repair repairAddress(const ConfigurationEntry& noted) {
  const std::string& bytes = noted.request.bytes;
  const std::uint32_t flags = flagsOf(noted);
  const bool as_it_was =
      familyOf(noted) == AF_INET || (flags & (IFA_F_NODAD | IFA_F_DADFAILED)) != 0;
  if (as_it_was) return {.attempts = {{bytes, kCreateNew}}};
  return {.attempts = {{withFlags(bytes, flags | IFA_F_NODAD), kCreateNew}},
          .afterwards = {{bytes, NLM_F_REPLACE}}};
}

}  // namespace

PresentEntries::PresentEntries(const std::vector<ConfigurationEntry>& present, int ifindex,
                               std::set<std::uint32_t> own_nexthops,
                               const std::vector<ConfigurationEntry>& noted)
    : own_nexthops_(std::move(own_nexthops)), routes_(present, ifindex, noted) {
  for (const ConfigurationEntry& entry : present) {
    if (entry.kind == EntryKind::kRoute) continue;
    if (isGroup(entry)) {
      groups_[nexthopId(entry)] = membersOf(entry);
    } else {
      keys_.insert(keyOf(entry));
    }
  }
}

bool PresentEntries::has(const ConfigurationEntry& noted) const {
  if (noted.kind == EntryKind::kRoute) return routes_.has(noted);
  if (!isGroup(noted)) return keys_.contains(keyOf(noted));
  const auto group = groups_.find(nexthopId(noted));
  if (group == groups_.end()) return false;
  for (const GroupMember& member : membersOf(noted)) {
    const bool there = std::any_of(group->second.begin(), group->second.end(),
                                   [&](const GroupMember& one) { return one.id == member.id; });
    if (own_nexthops_.contains(member.id) && !there) return false;
  }
  return true;
}

Repair PresentEntries::repair(const ConfigurationEntry& noted) const {
  switch (noted.kind) {
    case EntryKind::kAddress:
      return repairAddress(noted);
    case EntryKind::kNexthop:
      if (isGroup(noted)) return repairGroup(noted);
      return {.attempts = {{noted.request.bytes, kCreateNew}}};
    case EntryKind::kRoute:
      return routes_.repair(noted);
    case EntryKind::kNeighbour:
      break;
  }
  // What was learned meanwhile gives way to what was set.
  return {.attempts = {{noted.request.bytes, kReplace}}};
}

Repair PresentEntries::repairGroup(const ConfigurationEntry& noted) const {
  const std::vector<GroupMember> members = membersOf(noted);
  const auto group = groups_.find(nexthopId(noted));
  std::vector<GroupMember> left;  // without those that somebody may have removed
  for (const GroupMember& member : members) {
    if (own_nexthops_.contains(member.id)) left.push_back(member);
  }
  if (group == groups_.end()) {
    Repair repair{.attempts = {{noted.request.bytes, kCreateNew}}};
    if (!left.empty()) repair.attempts.push_back({withMembers(noted, left), kCreateNew});
    return repair;
  }
  std::vector<GroupMember> merged;
  const auto withId = [](const std::vector<GroupMember>& all, std::uint32_t id) {
    return std::find_if(all.begin(), all.end(),
                        [&](const GroupMember& one) { return one.id == id; });
  };
  for (const GroupMember& member : members) {
    const auto present = withId(group->second, member.id);
    if (present != group->second.end()) {
      merged.push_back(*present);
    } else if (own_nexthops_.contains(member.id)) {
      merged.push_back(member);
    }
  }
  for (const GroupMember& member : group->second) {
    if (withId(members, member.id) == members.end()) merged.push_back(member);
  }
  return {.attempts = {{withMembers(noted, merged), kReplace}}};
}

std::set<std::uint32_t> nexthopObjects(const std::vector<ConfigurationEntry>& entries) {
  std::set<std::uint32_t> objects;
  for (const ConfigurationEntry& entry : entries) {
    if (entry.kind == EntryKind::kNexthop && !isGroup(entry)) objects.insert(nexthopId(entry));
  }
  return objects;
}

Belongings whatToLookFor(const std::vector<ConfigurationEntry>& noted, int ifindex) {
  Belongings wanted{.ifindex = ifindex};
  for (const ConfigurationEntry& entry : noted) {
    if (entry.kind == EntryKind::kNexthop) wanted.nexthops.insert(nexthopId(entry));
    if (isAddress(entry, AF_INET)) wanted.sources.insert(localOf(entry));
    if (entry.kind != EntryKind::kRoute) continue;
    RouteParts parts = partsOf(entry);
    const bool of_others = std::any_of(parts.legs.begin(), parts.legs.end(),
                                       [&](const RouteLeg& leg) { return leg.ifindex != ifindex; });
    if (of_others) wanted.frames.insert(std::move(parts.frame));
  }
  return wanted;
}

bool isAddress(const ConfigurationEntry& entry, int family) {
  return entry.kind == EntryKind::kAddress && familyOf(entry) == family;
}

bool isSameAddress(const ConfigurationEntry& one, const ConfigurationEntry& other) {
  return one.kind == EntryKind::kAddress && other.kind == EntryKind::kAddress &&
         keyOf(one) == keyOf(other);
}

bool isProxy(const ConfigurationEntry& entry) {
  return entry.kind == EntryKind::kNeighbour &&
         (headerOf<ndmsg>(entry.request.bytes).ndm_flags & NTF_PROXY) != 0;
}

bool hasRival(const ConfigurationEntry& address, const std::vector<ConfigurationEntry>& entries) {
  const Network own = networkOf(address);
  return std::any_of(entries.begin(), entries.end(), [&](const ConfigurationEntry& entry) {
    if (!isAddress(entry, AF_INET6)) return false;
    const Network other = networkOf(entry);
    return other.prefix == own.prefix && other.priority != own.priority;
  });
}

std::vector<ConfigurationEntry> routesFrom(const std::vector<ConfigurationEntry>& addresses,
                                           const std::vector<ConfigurationEntry>& present) {
  std::unordered_set<std::string> sources;
  for (const ConfigurationEntry& address : addresses) {
    if (isAddress(address, AF_INET6)) sources.insert(localOf(address));
  }
  std::vector<ConfigurationEntry> routes;
  for (const ConfigurationEntry& entry : present) {
    if (entry.kind != EntryKind::kRoute || familyOf(entry) != AF_INET6) continue;
    const RequestMessage message(RTM_NEWROUTE, entry.request.bytes);
    const Attributes<RTA_MAX> found(message.get(), sizeof(rtmsg));
    if (sources.contains(bytesOf(found[RTA_PREFSRC]))) routes.push_back(entry);
  }
  return routes;
}

std::set<int> onlyOverOthers(const ConfigurationEntry& entry, int ifindex) {
  std::set<int> others;
  if (entry.kind != EntryKind::kRoute) return others;
  for (const RouteLeg& leg : partsOf(entry).legs) others.insert(leg.ifindex);
  if (others.contains(ifindex)) others.clear();
  return others;
}

std::vector<ConfigurationEntry> toAddAnew(const std::vector<ConfigurationEntry>& noted,
                                          const std::vector<ConfigurationEntry>& present,
                                          int family) {
  const auto among = [](const std::vector<ConfigurationEntry>& all, const ConfigurationEntry& one) {
    return std::any_of(all.begin(), all.end(),
                       [&](const ConfigurationEntry& other) { return isSameAddress(one, other); });
  };
  const auto isPrimary = [](const ConfigurationEntry& one) {
    return (flagsOf(one) & IFA_F_SECONDARY) == 0;
  };
  std::vector<ConfigurationEntry> before;  // of which the same are there now
  std::vector<ConfigurationEntry> after;
  std::vector<ConfigurationEntry> foreign;
  for (const ConfigurationEntry& one : noted) {
    if (isAddress(one, family) && among(present, one)) before.push_back(one);
  }
  for (const ConfigurationEntry& one : present) {
    if (isAddress(one, family)) (among(noted, one) ? after : foreign).push_back(one);
  }
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i) {
    const bool right =
        isSameAddress(before[i], after[i]) && (isPrimary(after[i]) || !isPrimary(before[i]));
    if (right) continue;
    before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(i));
    if (family == AF_INET) before.insert(before.end(), foreign.begin(), foreign.end());
    return before;
  }
  return {};
}

std::vector<ConfigurationEntry> foreignTo(const std::vector<ConfigurationEntry>& noted,
                                          const std::vector<ConfigurationEntry>& present,
                                          int ifindex) {
  const PresentEntries known(noted, ifindex, nexthopObjects(noted), present);
  std::vector<ConfigurationEntry> foreign;
  for (const ConfigurationEntry& entry : present) {
    if (!known.has(entry)) foreign.push_back(entry);
  }
  return foreign;
}

bool mayGoWithAddresses(const std::vector<ConfigurationEntry>& entries, int family) {
  return std::any_of(entries.begin(), entries.end(), [&](const ConfigurationEntry& entry) {
    return familyOf(entry) == family || familyOf(entry) == AF_UNSPEC;
  });
}

std::vector<ConfigurationEntry> withForeign(const std::vector<ConfigurationEntry>& noted,
                                            const std::vector<ConfigurationEntry>& present,
                                            int ifindex) {
  std::vector<ConfigurationEntry> all = noted;
  for (ConfigurationEntry& entry : foreignTo(noted, present, ifindex)) {
    all.push_back(std::move(entry));
  }
  // Each kind may need those before it.
  std::stable_sort(all.begin(), all.end(),
                   [](const ConfigurationEntry& left, const ConfigurationEntry& right) {
                     return left.kind < right.kind;
                   });
  return all;
}

}  // namespace faultline::netlink

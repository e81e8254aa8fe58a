#include "injector/netlink/interface_configuration.h"

#include <linux/rtnetlink.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "injector/netlink/configuration_gap.h"
#include "injector/netlink/configuration_reader.h"
#include "injector/netlink/configuration_watch.h"
#include "injector/netlink/entry_words.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/ipv6_mtu.h"
#include "injector/netlink/message.h"

namespace faultline::netlink {
namespace {

// What could not be put back may only have needed what was put back after it: a gateway that a
// route leads to. Longer chains than this are not known.
constexpr int kMostPasses = 5;
constexpr int kLookForCarrierMs = 10;

constexpr std::string_view kDidNotStay = "somebody has removed it again";
constexpr std::string_view kIsWrongAgain = "somebody has changed it again";
constexpr std::string_view kOthersAreBeside =
    "to set it right, what somebody else has set beside them would have to be removed";

/// Or until the patience is at its end: what needs no carrier can be put back all the same.
Status awaitCarrier(Socket& socket, int ifindex, Duration patience) {
  const TimePoint deadline = now() + patience;
  while (true) {
    ASSIGN_OR_RETURN(const NetDevice link, readNetDevice(socket, ifindex));
    if (link.carrier || now() >= deadline) return okStatus();
    ::poll(nullptr, 0, kLookForCarrierMs);
  }
}

InterfaceNames interfaceNames(Socket& socket) {
  InterfaceNames names;
  const auto links = listNetDevices(socket);
  if (!links.ok()) return names;  // they are called by their index then
  for (const NetDevice& link : *links) names[link.ifindex] = link.name;
  return names;
}

Status send(Socket& socket, int type, const RepairRequest& request) {
  return socket.request(Message(type, request.flags, std::string_view(request.bytes)), "add it");
}

/// Okay when one of the attempts was; else what the kernel said to the first.
Status carryOut(Socket& socket, const ConfigurationEntry& entry, const Repair& repair,
                const std::vector<ConfigurationEntry>& beside) {
  const int type = messageType(entry.kind);
  for (const std::string& route : repair.removals) (void)send(socket, RTM_DELROUTE, {route, 0});
  Status first;
  for (const RepairRequest& attempt : repair.attempts) {
    const Status status = send(socket, type, attempt);
    if (first.ok()) first = status;
    if (!status.ok()) continue;
    if (repair.afterwards.empty() || hasRival(entry, beside)) return okStatus();
    for (const RepairRequest& request : repair.afterwards) (void)send(socket, type, request);
    return okStatus();
  }
  return first;
}

/// Removes addresses and adds them anew, in their order. What cannot be added again is found
/// missing later.
void addAnew(Socket& socket, const std::vector<ConfigurationEntry>& present,
             const std::vector<ConfigurationEntry>& addresses) {
  const auto remove = [&](int type, const ConfigurationEntry& entry) {
    (void)send(socket, type, {entry.request.bytes, 0});
  };
  for (const ConfigurationEntry& route : routesFrom(addresses, present)) {
    remove(RTM_DELROUTE, route);
  }
  // The last first: with a primary address its secondary ones would go.
  for (auto entry = present.rbegin(); entry != present.rend(); ++entry) {
    const bool concerned = std::any_of(
        addresses.begin(), addresses.end(),
        [&](const ConfigurationEntry& address) { return isSameAddress(address, *entry); });
    if (concerned) remove(RTM_DELADDR, *entry);
  }
  const PresentEntries nothing({}, 0, {});
  for (const ConfigurationEntry& address : addresses) {
    (void)carryOut(socket, address, nothing.repair(address), present);
  }
}

/// A line for each thing, with its reason; empty: it was put back.
Status notRestored(const std::vector<std::string>& lines, const std::vector<std::string>& reasons) {
  std::string text = "could not put back";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += fmt::format("\n  {}: {}", lines[i], reasons[i].empty() ? kDidNotStay : reasons[i]);
  }
  return Status(Code::kNotRestored, std::move(text));
}

/// With the name that the interface has now.
Result<Belongings> named(Socket& socket, Belongings of) {
  ASSIGN_OR_RETURN(const NetDevice link, readNetDevice(socket, of.ifindex));
  of.name = link.name;
  return of;
}

}  // namespace

Settling settlingOnHost(int ifindex, const std::string& run) {
  for (const std::string_view place : {"systemd/netif/links", "NetworkManager/devices"}) {
    const std::string file = fmt::format("{}/{}/{}", run, place, ifindex);
    if (::access(file.c_str(), F_OK) == 0) return kManagedHost;
  }
  return kUnmanagedHost;
}

Status checkFields(const InterfaceConfiguration& configuration) {
  for (std::size_t i = 0; i < configuration.entries_.size(); ++i) {
    RETURN_IF_ERROR(checkEntry(configuration.entries_[i], configuration.ifindex_)
                        .withContext(fmt::format("entries[{}]", i)));
  }
  return okStatus();
}

Result<InterfaceConfiguration> InterfaceConfiguration::fromJson(const Json& json) {
  InterfaceConfiguration configuration;
  RETURN_IF_ERROR(JsonReader<Json>::read(json, "", configuration));
  return configuration;
}

InterfaceConfiguration::Json InterfaceConfiguration::toJson() const {
  return JsonWriter<Json>::write(*this);
}

void InterfaceConfiguration::rebind(int ifindex) {
  for (ConfigurationEntry& entry : entries_) rebindEntry(entry, ifindex_, ifindex);
  ifindex_ = ifindex;
}

Result<InterfaceConfiguration> InterfaceConfiguration::read(Socket& socket, int ifindex) {
  InterfaceConfiguration configuration;
  configuration.ifindex_ = ifindex;
  configuration.noted_at_ = now();
  ASSIGN_OR_RETURN(Belongings of, named(socket, {.ifindex = ifindex}));
  ASSIGN_OR_RETURN(configuration.ipv6_mtu_, readOwnIpv6Mtu(socket, ifindex));
  ASSIGN_OR_RETURN(configuration.entries_, readEntries(socket, std::move(of)));
  return configuration;
}

Result<InterfaceConfiguration> InterfaceConfiguration::readAgain(Socket& socket) const {
  WantedKinds wanted{false, false, false};
  for (const ConfigurationEntry& entry : entries_) {
    wanted.nexthops = wanted.nexthops || entry.kind == EntryKind::kNexthop;
    wanted.proxies = wanted.proxies || isProxy(entry);
    wanted.neighbours =
        wanted.neighbours || (entry.kind == EntryKind::kNeighbour && !isProxy(entry));
  }
  InterfaceConfiguration present;
  present.ifindex_ = ifindex_;
  if (ipv6_mtu_) {
    ASSIGN_OR_RETURN(present.ipv6_mtu_, readOwnIpv6Mtu(socket, ifindex_));
  }
  ASSIGN_OR_RETURN(Belongings of, named(socket, whatToLookFor(entries_, ifindex_)));
  ASSIGN_OR_RETURN(present.entries_, readEntries(socket, std::move(of), wanted));
  return present;
}

Result<std::vector<ConfigurationEntry>> InterfaceConfiguration::readAll(Socket& socket) const {
  ASSIGN_OR_RETURN(Belongings of, named(socket, whatToLookFor(entries_, ifindex_)));
  return readEntries(socket, std::move(of));
}

InterfaceConfiguration InterfaceConfiguration::due() const {
  InterfaceConfiguration left = *this;
  left.entries_.clear();
  left.noted_at_ = now();
  for (const ConfigurationEntry& entry : entries_) {
    if (auto remaining = afterTime(entry, left.noted_at_ - noted_at_)) {
      left.entries_.push_back(*std::move(remaining));
    }
  }
  return left;
}

int InterfaceConfiguration::Gap::size() const {
  return static_cast<int>(entries.size() + misplaced.size() + disordered.size()) +
         (ipv6_mtu ? 1 : 0);
}

Result<InterfaceConfiguration::Gap> InterfaceConfiguration::gapTo(
    Socket& socket, const InterfaceConfiguration& present,
    const std::vector<ConfigurationEntry>& noted) const {
  const PresentEntries known(present.entries_, ifindex_, nexthopObjects(entries_), entries_);
  Gap gap;
  std::set<int> down;  // found out when it matters
  bool asked = false;
  for (const ConfigurationEntry& entry : entries_) {
    if (known.isMisplaced(entry)) gap.misplaced.push_back(entry);
    if (known.has(entry)) continue;
    const std::set<int> others = onlyOverOthers(entry, ifindex_);
    if (!others.empty() && !asked) {
      ASSIGN_OR_RETURN(const std::vector<NetDevice> links, listNetDevices(socket));
      for (const NetDevice& link : links) {
        if (!link.admin_up) down.insert(link.ifindex);
      }
      asked = true;
    }
    const bool over_one_that_is_down = std::any_of(
        others.begin(), others.end(), [&](int ifindex) { return down.contains(ifindex); });
    if (!over_one_that_is_down) gap.entries.push_back(entry);
  }
  for (const int family : {AF_INET, AF_INET6}) {
    if (!toAddAnew(noted, present.entries_, family).empty()) gap.disordered.push_back(family);
  }
  gap.ipv6_mtu = ipv6_mtu_ && present.ipv6_mtu_ != ipv6_mtu_;
  return gap;
}

std::vector<std::string> InterfaceConfiguration::wordsOf(Socket& socket, const Gap& gap) const {
  std::vector<std::string> lines;
  if (gap.size() == 0) return lines;
  const InterfaceNames names = interfaceNames(socket);
  for (const ConfigurationEntry& entry : gap.entries) {
    lines.push_back(netlink::inWords(entry, names));
  }
  for (const ConfigurationEntry& entry : gap.misplaced) {
    lines.push_back(netlink::inWords(entry, names) +
                    ", in its place among those to the same destination");
  }
  for (const int family : gap.disordered) {
    lines.push_back(fmt::format("the order of its {} addresses, which chooses source addresses",
                                family == AF_INET ? "IPv4" : "IPv6"));
  }
  if (gap.ipv6_mtu) lines.push_back(fmt::format("IPv6 MTU {}", *ipv6_mtu_));
  return lines;
}

std::vector<std::string> InterfaceConfiguration::reasonsOf(const Gap& gap,
                                                           const Refusals& refusals) {
  const auto in = [](const auto& texts, const auto& key, std::string_view otherwise) {
    const auto found = texts.find(key);
    return found == texts.end() ? std::string(otherwise) : found->second;
  };
  std::vector<std::string> reasons;
  for (const ConfigurationEntry& entry : gap.entries) {
    reasons.push_back(in(refusals.of_entries, entry.request.bytes, ""));
  }
  for (const ConfigurationEntry& entry : gap.misplaced) {
    reasons.push_back(in(refusals.of_entries, entry.request.bytes, kIsWrongAgain));
  }
  for (const int family : gap.disordered) {
    reasons.push_back(in(refusals.of_order, family, kIsWrongAgain));
  }
  if (gap.ipv6_mtu) reasons.push_back(refusals.of_ipv6_mtu);
  return reasons;
}

std::vector<std::string> InterfaceConfiguration::inWords(const std::string& interface_name) const {
  std::vector<std::string> lines;
  for (const ConfigurationEntry& entry : entries_) {
    lines.push_back(netlink::inWords(entry, {{ifindex_, interface_name}}));
  }
  if (ipv6_mtu_) lines.push_back(fmt::format("IPv6 MTU {}", *ipv6_mtu_));
  return lines;
}

Result<int> InterfaceConfiguration::missing(Socket& socket) const {
  if (empty()) return 0;
  ASSIGN_OR_RETURN(const InterfaceConfiguration present, readAgain(socket));
  const InterfaceConfiguration wanted = due();
  ASSIGN_OR_RETURN(const Gap gap, wanted.gapTo(socket, present, wanted.entries_));
  return gap.size();
}

Result<std::vector<std::string>> InterfaceConfiguration::missingInWords(Socket& socket) const {
  if (empty()) return std::vector<std::string>();
  ASSIGN_OR_RETURN(const InterfaceConfiguration present, readAgain(socket));
  const InterfaceConfiguration wanted = due();
  ASSIGN_OR_RETURN(const Gap gap, wanted.gapTo(socket, present, wanted.entries_));
  return wordsOf(socket, gap);
}

Status InterfaceConfiguration::putBack(Socket& socket, bool keep_foreign) const {
  InterfaceConfiguration wanted = due();  // later also what others have and was removed on the way
  const std::vector<ConfigurationEntry> noted = wanted.entries_;
  Refusals refusals;
  bool ordered = false;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    ASSIGN_OR_RETURN(const InterfaceConfiguration present, wanted.readAgain(socket));
    ASSIGN_OR_RETURN(Gap gap, wanted.gapTo(socket, present, noted));
    if (gap.size() == 0) return okStatus();
    orderForRepair(gap.entries);
    orderForRepair(gap.misplaced);
    const auto anAddress = [](const ConfigurationEntry& entry) {
      return entry.kind == EntryKind::kAddress;
    };
    const bool addresses_missing = std::any_of(gap.entries.begin(), gap.entries.end(), anAddress);
    if (!gap.disordered.empty() && !ordered && (!addresses_missing || pass > 0)) {
      ordered = true;
      ASSIGN_OR_RETURN(const std::vector<ConfigurationEntry> all, wanted.readAll(socket));
      const std::vector<ConfigurationEntry> foreign = foreignTo(noted, all, ifindex_);
      if (!keep_foreign) wanted.entries_ = withForeign(noted, all, ifindex_);
      for (const int family : gap.disordered) {
        if (keep_foreign && mayGoWithAddresses(foreign, family)) {
          refusals.of_order[family] = kOthersAreBeside;
        } else {
          addAnew(socket, all, toAddAnew(noted, all, family));
        }
      }
      continue;
    }
    const PresentEntries known(present.entries_, ifindex_, nexthopObjects(wanted.entries_),
                               wanted.entries_);
    const auto beside = withForeign(wanted.entries_, present.entries_, ifindex_);
    bool all = true;
    bool any = false;
    const auto carryOutAll = [&](const std::vector<ConfigurationEntry>& entries) {
      for (const ConfigurationEntry& entry : entries) {
        const Status status = carryOut(socket, entry, known.repair(entry), beside);
        all = all && status.ok();
        any = any || status.ok();
        refusals.of_entries[entry.request.bytes] = status.message();
      }
    };
    carryOutAll(gap.entries);
    // What was put back may have moved them.
    if (!any) carryOutAll(gap.misplaced);
    if (gap.ipv6_mtu) {
      const Status status = setIpv6Mtu(socket, ifindex_, *ipv6_mtu_);
      all = all && status.ok();
      refusals.of_ipv6_mtu = status.message();
    }
    // What has an order may have come out in another one.
    const bool in_order = !addresses_missing && gap.disordered.empty() &&
                          !orderMatters(gap.entries) && gap.misplaced.empty();
    if (all && in_order) return okStatus();
    if (!any && (ordered || gap.disordered.empty())) break;
  }
  ASSIGN_OR_RETURN(const InterfaceConfiguration present, wanted.readAgain(socket));
  ASSIGN_OR_RETURN(const Gap gap, wanted.gapTo(socket, present, noted));
  if (gap.size() == 0) return okStatus();
  return notRestored(wordsOf(socket, gap), reasonsOf(gap, refusals));
}

Status InterfaceConfiguration::restore(Socket& socket, const Settling& settling) const {
  if (empty()) return okStatus();
  if (settling.quiet <= 0ns) return putBack(socket, settling.keep_foreign);
  ASSIGN_OR_RETURN(ConfigurationWatch watch, ConfigurationWatch::open(socket, ifindex_));
  const TimePoint end = now() + settling.limit;
  const auto patience = [&] { return std::clamp(end - now(), Duration(), settling.patience); };
  RETURN_IF_ERROR(awaitCarrier(socket, ifindex_, patience()));
  const TimePoint least = now() + settling.least;
  Status put_back;
  for (int round = 0; true;) {
    // Also somebody who never rests gets what is missing beside his own.
    const Duration longest = std::max(patience(), settling.quiet);  // also behind the last round
    RETURN_IF_ERROR(watch.awaitQuiet(settling.quiet, longest).status());
    ASSIGN_OR_RETURN(const std::vector<std::string> lines, missingInWords(socket));
    if (lines.empty()) {
      if (now() >= std::min(least, end)) return okStatus();
      continue;
    }
    if (round < settling.rounds && now() < end) {
      ++round;
      put_back = putBack(socket, settling.keep_foreign);
      RETURN_IF_ERROR(awaitCarrier(socket, ifindex_, patience()));
      continue;
    }
    if (!put_back.ok()) return put_back;
    return notRestored(lines, std::vector<std::string>(lines.size()));
  }
}

}  // namespace faultline::netlink

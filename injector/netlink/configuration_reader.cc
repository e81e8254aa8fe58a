#include "injector/netlink/configuration_reader.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <string>
#include <utility>

#include "injector/netlink/configuration_gap.h"
#include "injector/netlink/message.h"
#include "injector/netlink/request_bytes.h"
#include "injector/netlink/route_legs.h"

namespace faultline::netlink {
namespace {

using Entries = std::vector<ConfigurationEntry>;

/// Finds out where routes stand among those to the same destination: the kernel tells these one
/// after the other, in the order in which it looks at them.
class RoutePlaces {
 public:
  /// The next message; `ours`: the entry that it became, as its index, or -1.
  void see(const nlmsghdr* message, Entries& entries, int ours) {
    std::string destination = destinationOf(message);
    if (destination != destination_) {
      destination_ = std::move(destination);
      before_.clear();
      others_ = false;
    }
    if (ours < 0) {
      others_ = true;
    } else if (others_ || (!before_.empty() && isIpv6(message))) {
      entries[static_cast<std::size_t>(ours)].place = RoutePlace::kBehind;
    } else {
      before_.push_back(static_cast<std::size_t>(ours));
      if (before_.size() == 1) return;
    }
    for (const std::size_t one : before_) entries[one].place = RoutePlace::kBefore;
  }

 private:
  /// Of IPv6 the kernel puts whatever is added behind the others.
  static bool isIpv6(const nlmsghdr* message) {
    return static_cast<const rtmsg*>(nlmsg_data(message))->rtm_family == AF_INET6;
  }

  std::string destination_;
  std::vector<std::size_t> before_;  // of ours, those that no other one stands before
  bool others_ = false;
};

/// Routes without a gateway, and of IPv4 those of a narrower scope, before the others; last, in the
/// kernel's order, those of which that order matters.
int rankOf(const ConfigurationEntry& entry) {
  if (entry.kind != EntryKind::kRoute) return 0;
  if (entry.place != RoutePlace::kAlone) return 2;
  const auto header = headerOf<rtmsg>(entry.request.bytes);
  if (header.rtm_family == AF_INET) return -int{header.rtm_scope};
  const RequestMessage message(RTM_NEWROUTE, entry.request.bytes);
  const Attributes<RTA_MAX> found(message.get(), sizeof header);
  return found[RTA_GATEWAY] != nullptr || found[RTA_MULTIPATH] != nullptr ? 1 : 0;
}

class Reader {
 public:
  Reader(Socket& socket, Belongings of) : socket_(socket), of_(std::move(of)) {}

  Status readAddresses() {
    Message request(RTM_GETADDR, 0, ifaddrmsg{});
    return dump(request, "list addresses");
  }

  /// Objects first: whose a group is, its members say.
  Status readNexthops() {
    Message objects(RTM_GETNEXTHOP, 0, nhmsg{});
    objects.put(NHA_OIF, static_cast<std::uint32_t>(of_.ifindex));
    const Status status = dump(objects, "list nexthop objects");
    // Linux before 5.3 has none.
    if (status.code() == Code::kUnsupported) return okStatus();
    RETURN_IF_ERROR(status);
    Message groups(RTM_GETNEXTHOP, 0, nhmsg{});
    groups.put(NHA_GROUPS, nullptr, 0);
    return dump(groups, "list groups of nexthop objects");
  }

  Status readRoutes() {
    Message request(RTM_GETROUTE, 0, rtmsg{});
    return dump(request, "list routes");
  }

  Status readNeighbours() {
    Message request(RTM_GETNEIGH, 0, ndmsg{});
    return dump(request, "list neighbours");
  }

  Status readProxies() {
    ndmsg header{};
    header.ndm_flags = NTF_PROXY;
    Message proxies(RTM_GETNEIGH, 0, header);
    return dump(proxies, "list proxy neighbours");
  }

  Entries take() && { return std::move(entries_); }

 private:
  Status dump(Message& request, std::string_view attempt) {
    const std::size_t before = entries_.size();
    RoutePlaces places;
    return socket_.dump(
        request, attempt,
        [&](const nlmsghdr* message) {
          auto entry = entryOf(message, of_);
          const int ours = entry ? static_cast<int>(entries_.size()) : -1;
          if (entry) entries_.push_back(*std::move(entry));
          if (message->nlmsg_type == RTM_NEWROUTE) places.see(message, entries_, ours);
        },
        [&] {
          entries_.resize(before);
          places = RoutePlaces();
        });
  }

  Socket& socket_;
  Belongings of_;
  Entries entries_;
};

}  // namespace

Result<std::vector<ConfigurationEntry>> readEntries(Socket& socket, Belongings of,
                                                    const WantedKinds& wanted) {
  Reader reader(socket, std::move(of));
  RETURN_IF_ERROR(reader.readAddresses());
  if (wanted.nexthops) RETURN_IF_ERROR(reader.readNexthops());
  RETURN_IF_ERROR(reader.readRoutes());
  if (wanted.neighbours) RETURN_IF_ERROR(reader.readNeighbours());
  if (wanted.proxies) RETURN_IF_ERROR(reader.readProxies());
  Entries entries = std::move(reader).take();
  // Of IPv6 the kernel tells the address first that was added last.
  const auto isIpv6Address = [](const ConfigurationEntry& entry) {
    return isAddress(entry, AF_INET6);
  };
  const auto first = std::find_if(entries.begin(), entries.end(), isIpv6Address);
  std::reverse(first, std::find_if_not(first, entries.end(), isIpv6Address));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const ConfigurationEntry& left, const ConfigurationEntry& right) {
                     return std::pair(left.kind, rankOf(left)) <
                            std::pair(right.kind, rankOf(right));
                   });
  return entries;
}

}  // namespace faultline::netlink

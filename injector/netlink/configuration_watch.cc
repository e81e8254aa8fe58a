#include "injector/netlink/configuration_watch.h"

#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/message.h"
#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

// As in Socket: more than the kernel puts into one message.
constexpr std::size_t kMessageBytes = 64 * 1024;

// RTNLGRP_NEXTHOP exists since Linux 5.3: without it nothing is to be heard of.
constexpr int kGroups[] = {RTNLGRP_LINK,       RTNLGRP_NEIGH,       RTNLGRP_IPV4_IFADDR,
                           RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_ROUTE,
                           RTNLGRP_NEXTHOP};

/// Of a route by an object it is not told here whose that is: it may be the interface's.
bool leadsOver(const nlmsghdr* message, int ifindex) {
  const Attributes<RTA_MAX> found(message, sizeof(rtmsg));
  if (found[RTA_NH_ID] != nullptr || found.value<int>(RTA_OIF) == ifindex) return true;
  if (found[RTA_MULTIPATH] == nullptr) return false;
  int left = nla_len(found[RTA_MULTIPATH]);
  for (auto* leg = static_cast<const rtnexthop*>(nla_data(found[RTA_MULTIPATH]));
       left >= int{sizeof *leg} && RTNH_OK(leg, left);
       left -= RTNH_ALIGN(leg->rtnh_len), leg = RTNH_NEXT(leg)) {
    if (leg->rtnh_ifindex == ifindex) return true;
  }
  return false;
}

}  // namespace

bool isChangeOf(const nlmsghdr* message, int ifindex) {
  switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return nlmsg_datalen(message) >= int{sizeof(ifinfomsg)} &&
             static_cast<const ifinfomsg*>(nlmsg_data(message))->ifi_index == ifindex;
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return nlmsg_datalen(message) >= int{sizeof(ifaddrmsg)} &&
             static_cast<int>(static_cast<const ifaddrmsg*>(nlmsg_data(message))->ifa_index) ==
                 ifindex;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return leadsOver(message, ifindex);
    case RTM_NEWNEXTHOP:
    case RTM_DELNEXTHOP: {
      const Attributes<NHA_MAX> found(message, sizeof(nhmsg));
      return found[NHA_GROUP] != nullptr || found.value<int>(NHA_OIF) == ifindex;
    }
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH: {
      if (nlmsg_datalen(message) < int{sizeof(ndmsg)}) return false;
      const auto* const header = static_cast<const ndmsg*>(nlmsg_data(message));
      const bool made =
          (header->ndm_state & NUD_PERMANENT) != 0 || (header->ndm_flags & NTF_PROXY) != 0;
      return header->ndm_ifindex == ifindex && made;
    }
    default:
      return false;
  }
}

Result<ConfigurationWatch> ConfigurationWatch::open(const Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!fd) return Status::fromErrno(errno, "listen to changes of an interface");
  for (const int group : kGroups) {
    const int added =
        ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
    if (added != 0 && group != RTNLGRP_NEXTHOP) {
      return Status::fromErrno(errno, "listen to changes of an interface");
    }
  }
  return ConfigurationWatch(std::move(fd), ifindex);
}

Result<bool> ConfigurationWatch::anyChange() {
  std::vector<char> buffer(kMessageBytes);
  bool any = false;
  while (true) {
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return any;
    if (size < 0 && errno == ENOBUFS) {  // so many changes that some were not heard of
      any = true;
      continue;
    }
    if (size < 0) return Status::fromErrno(errno, "hear of changes of an interface");
    int left = static_cast<int>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); nlmsg_ok(header, left) != 0;
         header = nlmsg_next(header, &left)) {
      any = any || isChangeOf(header, ifindex_);
    }
  }
}

Result<bool> ConfigurationWatch::awaitQuiet(Duration quiet, Duration patience) {
  const TimePoint deadline = now() + patience;
  TimePoint since = now();
  while (true) {
    const Duration missing = since + quiet - now();
    const Duration left = deadline - now();
    if (missing <= 0ns) return true;
    if (left <= 0ns) return false;
    pollfd event{fd_.get(), POLLIN, 0};
    const auto wait = duration_cast<std::chrono::milliseconds>(std::min(missing, left)).count();
    ::poll(&event, 1, static_cast<int>(wait) + 1);
    ASSIGN_OR_RETURN(const bool changed, anyChange());
    if (changed) since = now();
  }
}

}  // namespace faultline::netlink

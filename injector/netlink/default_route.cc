#include "injector/netlink/default_route.h"

#include <linux/rtnetlink.h>

namespace faultline::netlink {
namespace {

bool leadsOver(const Attributes<RTA_MAX>& route, int ifindex) {
  if (route.value<int>(RTA_OIF) == ifindex) return true;
  const nlattr* const hops = route[RTA_MULTIPATH];
  if (hops == nullptr) return false;
  const auto* hop = static_cast<const rtnexthop*>(nla_data(hops));
  int left = nla_len(hops);
  while (RTNH_OK(hop, left)) {
    if (hop->rtnh_ifindex == ifindex) return true;
    left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
    hop = RTNH_NEXT(hop);
  }
  return false;
}

}  // namespace

Result<bool> carriesDefaultRoute(Socket& socket, int ifindex) {
  bool found = false;
  Message message(RTM_GETROUTE, 0, rtmsg{});
  RETURN_IF_ERROR(socket.dump(
      message, "list routes",
      [&](const nlmsghdr* answer) {
        const auto* const header = static_cast<const rtmsg*>(nlmsg_data(answer));
        if (header->rtm_dst_len != 0 || header->rtm_type != RTN_UNICAST) return;
        if (leadsOver(Attributes<RTA_MAX>(answer, sizeof(rtmsg)), ifindex)) found = true;
      },
      [&] { found = false; }));
  return found;
}

}  // namespace faultline::netlink

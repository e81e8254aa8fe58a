#include "injector/netlink/counters.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>

namespace faultline::netlink {
namespace {

Message question(int ifindex) {
  if_stats_msg header{};
  header.family = AF_UNSPEC;
  header.ifindex = static_cast<std::uint32_t>(ifindex);
  header.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
  return Message(RTM_GETSTATS, 0, header);
}

LinkCounters parse(const nlmsghdr* message) {
  const Attributes<IFLA_STATS_MAX> attributes(message, sizeof(if_stats_msg));
  LinkCounters counters;
  counters.ifindex =
      static_cast<int>(static_cast<const if_stats_msg*>(nlmsg_data(message))->ifindex);
  const nlattr* const found = attributes[IFLA_STATS_LINK_64];
  rtnl_link_stats64 stats{};
  if (found != nullptr) {
    // Older kernels send a shorter structure: what is missing stays zero.
    const auto size = std::min<std::size_t>(sizeof stats, static_cast<std::size_t>(nla_len(found)));
    __builtin_memcpy(&stats, nla_data(found), size);
  }
  counters.rx_bytes = stats.rx_bytes;
  counters.tx_bytes = stats.tx_bytes;
  counters.rx_packets = stats.rx_packets;
  counters.tx_packets = stats.tx_packets;
  counters.tx_dropped = stats.tx_dropped;
  return counters;
}

}  // namespace

Result<LinkCounters> readCounters(Socket& socket, int ifindex) {
  Message message = question(ifindex);
  LinkCounters counters;
  RETURN_IF_ERROR(socket.ask(message, fmt::format("read the counters of interface {}", ifindex),
                             [&](const nlmsghdr* answer) { counters = parse(answer); }));
  return counters;
}

Status readAllCounters(Socket& socket, std::vector<LinkCounters>& counters) {
  Message message = question(0);
  counters.clear();
  return socket.dump(
      message, "read the counters of all interfaces",
      [&](const nlmsghdr* answer) { counters.push_back(parse(answer)); },
      [&] { counters.clear(); });
}

}  // namespace faultline::netlink

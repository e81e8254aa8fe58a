#include "injector/netlink/interface.h"

#include <linux/if.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include <cstring>

namespace faultline::netlink {
namespace {

ifinfomsg linkHeader(int ifindex) {
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = ifindex;
  return header;
}

void readBridgePort(const nlattr* link_info, NetDevice& link) {
  const Attributes<IFLA_INFO_MAX> info(link_info);
  link.kind = info.text(IFLA_INFO_KIND);
  if (info.text(IFLA_INFO_SLAVE_KIND) != "bridge" || info[IFLA_INFO_SLAVE_DATA] == nullptr) return;
  const Attributes<IFLA_BRPORT_MAX> port(info[IFLA_INFO_SLAVE_DATA]);
  link.bridge_port_state = port.value<std::uint8_t>(IFLA_BRPORT_STATE);
}

NetDevice parseLink(const nlmsghdr* message) {
  const auto* const header = static_cast<const ifinfomsg*>(nlmsg_data(message));
  const Attributes<IFLA_MAX> attributes(message, sizeof(ifinfomsg));
  NetDevice link;
  link.ifindex = header->ifi_index;
  link.name = attributes.text(IFLA_IFNAME);
  link.admin_up = (header->ifi_flags & IFF_UP) != 0;
  link.carrier = link.admin_up && attributes.value<std::uint8_t>(IFLA_CARRIER) != 0;
  link.operstate = attributes.value<std::uint8_t>(IFLA_OPERSTATE);
  link.peer_ifindex = attributes.value<int>(IFLA_LINK);
  link.peer_elsewhere = attributes[IFLA_LINK_NETNSID] != nullptr;
  link.bridge_ifindex = attributes.value<int>(IFLA_MASTER);
  link.carrier_down_count = attributes.value<std::uint32_t>(IFLA_CARRIER_DOWN_COUNT);
  link.carrier_up_count = attributes.value<std::uint32_t>(IFLA_CARRIER_UP_COUNT);
  link.mtu = attributes.value<std::uint32_t>(IFLA_MTU);
  link.mac = attributes.value<MacAddress>(IFLA_ADDRESS);
  if (attributes[IFLA_LINKINFO] != nullptr) readBridgePort(attributes[IFLA_LINKINFO], link);
  return link;
}

}  // namespace

Status createVeth(Socket& near, const VethEnd& near_end, int far_namespace_fd,
                  const VethEnd& far_end) {
  Message message(RTM_NEWLINK, kCreateNew, linkHeader(near_end.ifindex));
  message.putString(IFLA_IFNAME, near_end.name).put(IFLA_MTU, std::uint32_t{near_end.mtu});
  message.nest(IFLA_LINKINFO, [&](Message& info) {
    info.putString(IFLA_INFO_KIND, "veth");
    info.nest(IFLA_INFO_DATA, [&](Message& data) {
      data.nest(VETH_INFO_PEER, [&](Message& peer) {
        const ifinfomsg header = linkHeader(far_end.ifindex);
        peer.append(&header, sizeof header);
        peer.putString(IFLA_IFNAME, far_end.name).put(IFLA_MTU, std::uint32_t{far_end.mtu});
        peer.put(IFLA_NET_NS_FD, static_cast<std::uint32_t>(far_namespace_fd));
      });
    });
  });
  return near.request(std::move(message),
                      fmt::format("create the veth pair {} - {}", near_end.name, far_end.name));
}

Status createBridge(Socket& socket, std::string_view name, int ifindex) {
  const auto message = [&](bool with_snooping) {
    Message bridge(RTM_NEWLINK, kCreateNew, linkHeader(ifindex));
    bridge.putString(IFLA_IFNAME, name);
    bridge.nest(IFLA_LINKINFO, [&](Message& info) {
      info.putString(IFLA_INFO_KIND, "bridge");
      info.nest(IFLA_INFO_DATA, [&](Message& data) {
        data.put(IFLA_BR_STP_STATE, std::uint32_t{0}).put(IFLA_BR_FORWARD_DELAY, std::uint32_t{0});
        if (with_snooping) data.put(IFLA_BR_MCAST_SNOOPING, std::uint8_t{0});
      });
    });
    return bridge;
  };
  const std::string attempt = fmt::format("create the bridge {}", name);
  const Status status = socket.request(message(true), attempt);
  // A kernel built without snooping does not know the attribute, and has nothing to switch off.
  if (status.code() != Code::kInvalidArgument) return status;
  return socket.request(message(false), attempt);
}

Status setUp(Socket& socket, int ifindex, bool up) {
  ifinfomsg header = linkHeader(ifindex);
  header.ifi_change = IFF_UP;
  header.ifi_flags = up ? IFF_UP : 0;
  return socket.request(Message(RTM_NEWLINK, 0, header),
                        fmt::format("set interface {} {}", ifindex, up ? "up" : "down"));
}

Status setMtu(Socket& socket, int ifindex, unsigned mtu) {
  Message message(RTM_NEWLINK, 0, linkHeader(ifindex));
  message.put(IFLA_MTU, std::uint32_t{mtu});
  return socket.request(std::move(message),
                        fmt::format("set the MTU of interface {} to {}", ifindex, mtu));
}

Status enslave(Socket& socket, int ifindex, int bridge_ifindex) {
  Message message(RTM_NEWLINK, 0, linkHeader(ifindex));
  message.put(IFLA_MASTER, static_cast<std::uint32_t>(bridge_ifindex));
  return socket.request(std::move(message),
                        fmt::format("make interface {} a bridge port", ifindex));
}

Status deleteNetDevice(Socket& socket, int ifindex) {
  return socket.request(Message(RTM_DELLINK, 0, linkHeader(ifindex)),
                        fmt::format("delete interface {}", ifindex));
}

namespace {

Status setPortAttribute(Socket& socket, int ifindex, int attribute, std::uint8_t value,
                        std::string_view what) {
  ifinfomsg header = linkHeader(ifindex);
  header.ifi_family = AF_BRIDGE;
  Message message(RTM_SETLINK, 0, header);
  message.nest(IFLA_PROTINFO | NLA_F_NESTED, [&](Message& port) { port.put(attribute, value); });
  return socket.request(std::move(message), fmt::format("{} of bridge port {}", what, ifindex));
}

}  // namespace

Status setBridgePortState(Socket& socket, int ifindex, BridgePortState state) {
  return setPortAttribute(socket, ifindex, IFLA_BRPORT_STATE, static_cast<std::uint8_t>(state),
                          "set the state");
}

Status setUnicastFlood(Socket& socket, int ifindex, bool flood) {
  return setPortAttribute(socket, ifindex, IFLA_BRPORT_UNICAST_FLOOD, flood ? 1 : 0,
                          "set the flooding");
}

Status setPortIsolated(Socket& socket, int ifindex, bool isolated) {
  return setPortAttribute(socket, ifindex, IFLA_BRPORT_ISOLATED, isolated ? 1 : 0,
                          "set the isolation");
}

Status addStaticForwarding(Socket& socket, int ifindex, const MacAddress& mac) {
  ndmsg header{};
  header.ndm_family = AF_BRIDGE;
  header.ndm_ifindex = ifindex;
  header.ndm_flags = NTF_MASTER;
  header.ndm_state = NUD_NOARP | NUD_REACHABLE;  // static; NUD_PERMANENT would be the bridge's own
  Message message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, header);
  message.put(NDA_LLADDR, mac.data(), mac.size());
  return socket.request(std::move(message),
                        fmt::format("add an address behind bridge port {}", ifindex));
}

bool isOperational(const NetDevice& link) {
  const bool forwards = link.bridge_port_state < 0 ||
                        link.bridge_port_state == static_cast<int>(BridgePortState::kForwarding);
  return link.carrier && link.operstate == IF_OPER_UP && forwards;
}

Result<NetDevice> readNetDevice(Socket& socket, int ifindex) {
  Message message(RTM_GETLINK, 0, linkHeader(ifindex));
  NetDevice link;
  RETURN_IF_ERROR(socket.ask(message, fmt::format("read interface {}", ifindex),
                             [&](const nlmsghdr* answer) { link = parseLink(answer); }));
  return link;
}

Result<std::vector<NetDevice>> listNetDevices(Socket& socket) {
  Message message(RTM_GETLINK, 0, linkHeader(0));
  std::vector<NetDevice> links;
  RETURN_IF_ERROR(socket.dump(
      message, "list interfaces",
      [&](const nlmsghdr* answer) { links.push_back(parseLink(answer)); }, [&] { links.clear(); }));
  return links;
}

}  // namespace faultline::netlink

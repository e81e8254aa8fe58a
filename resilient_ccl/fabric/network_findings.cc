#include "resilient_ccl/fabric/network_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::fabric {
namespace {

constexpr int kAddressBits = 32;

std::uint32_t maskOf(int prefix) {
  return prefix <= 0 ? 0 : ~std::uint32_t{0} << (kAddressBits - std::min(prefix, kAddressBits));
}

const NetworkAddress* addressOf(const NetworkLink& link, std::uint32_t address) {
  const auto found = std::ranges::find(link.addresses, address, &NetworkAddress::ipv4);
  return found == link.addresses.end() ? nullptr : &*found;
}

/// "10.0.0.0/24", where both are in it and it has room for two nodes.
std::optional<std::string> commonSubnet(const NetworkAddress& one, const NetworkAddress& other) {
  const int prefix = std::min(one.prefix, other.prefix);
  constexpr int kPointToPoint = 31;  // RFC 3021: two ends of one cable, and /32
  if (prefix >= kPointToPoint) return std::nullopt;
  if (((one.ipv4 ^ other.ipv4) & maskOf(prefix)) != 0) return std::nullopt;
  return fmt::format("{}/{}", transport::tcp::formatAddress(one.ipv4 & maskOf(prefix)), prefix);
}

bool hasRule(const NetworkSnapshot& network, std::uint32_t from) {
  return std::ranges::any_of(network.rules, [&](const NetworkRule& rule) {
    return rule.prefix > 0 && ((rule.from ^ from) & maskOf(rule.prefix)) == 0;
  });
}

/// The routes through a rail's device that lead farther than its own subnet, and whether a packet
/// that is bound to the device and has the rail's address comes to their tables.
struct WaysBeyond {
  std::vector<const NetworkRoute*> found, notFound;

  bool ofTheirOwn() const {
    return std::ranges::any_of(found,
                               [](const NetworkRoute* route) { return !isForAll(route->table); });
  }
  static bool isForAll(int table) {
    constexpr int kMain = 254, kDefault = 253;  // RT_TABLE_MAIN, RT_TABLE_DEFAULT
    return table == kMain || table == kDefault;
  }
};

WaysBeyond waysBeyond(const NetworkSnapshot& network, const NetworkLink& link,
                      const NetworkAddress& own) {
  WaysBeyond ways;
  for (const NetworkRoute& route : network.routes) {
    const bool inside =
        route.prefix >= own.prefix && ((route.to ^ own.ipv4) & maskOf(own.prefix)) == 0;
    if (route.device != link.index || (inside && !route.gateway)) continue;
    const bool led = WaysBeyond::isForAll(route.table) ||
                     std::ranges::any_of(network.rules, [&](const NetworkRule& rule) {
                       return rule.table == route.table &&
                              ((rule.from ^ own.ipv4) & maskOf(rule.prefix)) == 0 &&
                              (rule.device.empty() || rule.device == link.name);
                     });
    (led ? ways.found : ways.notFound).push_back(&route);
  }
  return ways;
}

/// What an interface stands on in the end: of a VLAN over a bond the bond.
const NetworkLink& cardOf(const NetworkSnapshot& network, const NetworkLink& link) {
  const NetworkLink* card = &link;
  for (std::size_t step = 0; step < network.links.size() && card->lower != 0; ++step) {
    const NetworkLink* const lower = network.find(card->lower);
    if (lower == nullptr) break;
    card = lower;
  }
  return *card;
}

std::vector<const NetworkLink*> portsOf(const NetworkSnapshot& network, const NetworkLink& master) {
  std::vector<const NetworkLink*> ports;
  for (const NetworkLink& link : network.links) {
    if (link.master == master.index) ports.push_back(&link);
  }
  return ports;
}

/// Whether frames from it may leave this host by another device than those of containers and
/// guests.
bool leavesTheHost(const NetworkLink& port) {
  constexpr std::array<std::string_view, 4> kEnds{"veth", "tun", "dummy", "ifb"};  // tap: "tun"
  return std::ranges::find(kEnds, port.kind) == kEnds.end();
}

void judgeTwo(const NetworkSnapshot& network, const UsedNic& one, const UsedNic& other,
              std::vector<NetworkFinding>& findings) {
  const NetworkLink* const first = network.find(one.device);
  const NetworkLink* const second = network.find(other.device);
  if (first == nullptr || second == nullptr) return;
  const std::string both = fmt::format("{}, {}", one.device, other.device);
  const NetworkLink& card = cardOf(network, *first);
  if (card.index == cardOf(network, *second).index) {
    findings.push_back({both, fmt::format("both stand on {}", card.name),
                        "one port carries both rails, and its failure takes both",
                        "name one of them in FAULTLINE_NICS, and interfaces of other ports"});
  }
  const NetworkAddress* const here = addressOf(*first, one.address);
  const NetworkAddress* const there = addressOf(*second, other.address);
  if (here == nullptr || there == nullptr) return;
  const auto subnet = commonSubnet(*here, *there);
  if (!subnet) return;
  if (first->arpIgnore == 0 || second->arpIgnore == 0) {
    findings.push_back(
        {both,
         fmt::format("both are in {}, and net.ipv4.conf.{}.arp_ignore is 0: each of them answers "
                     "ARP for the other one's address",
                     *subnet, first->arpIgnore == 0 ? first->name : second->name),
         "frames for one rail arrive at the other NIC, where its sockets hear nothing",
         "on each node: sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2; "
         "or give each rail a subnet of its own, or name one of the two in FAULTLINE_NICS",
         true});
    return;
  }
  constexpr int kStrict = 1;
  for (const auto& [link, nic] : {std::pair{first, &one}, std::pair{second, &other}}) {
    if (link->rpFilter != kStrict || hasRule(network, nic->address)) continue;
    findings.push_back(
        {both,
         fmt::format("both are in {}, and net.ipv4.conf.{}.rp_filter is 1 (strict), without a "
                     "routing table of its own for {}",
                     *subnet, link->name, transport::tcp::formatAddress(nic->address)),
         "the kernel drops what arrives at the NIC that it would not answer from",
         fmt::format("on each node: sysctl -w net.ipv4.conf.all.rp_filter=2 "
                     "net.ipv4.conf.{}.rp_filter=2; or give each rail a subnet of its own",
                     link->name),
         true});
    return;
  }
}

void judgeAddress(const NetworkLink& link, const UsedNic& nic, const std::string& what,
                  std::vector<NetworkFinding>& findings) {
  std::vector<std::string> others;
  for (const NetworkAddress& address : link.addresses) {
    if (address.ipv4 != 0 && address.ipv4 != nic.address) {
      others.push_back(address.label.empty() || address.label == link.name
                           ? address.text
                           : fmt::format("{} ({})", address.text, address.label));
    }
  }
  if (!others.empty()) {
    std::string all;
    for (const std::string& one : others) all += (all.empty() ? "" : ", ") + one;
    findings.push_back({nic.device,
                        fmt::format("has more addresses than the {} that {} uses: {}",
                                    transport::tcp::formatAddress(nic.address), what, all),
                        "none, while that address stays; when it goes, another one takes its place",
                        "look that it is one of the same network on all nodes; a label names "
                        "another one (FAULTLINE_NICS=eth0:1)"});
  }
  const NetworkAddress* const own = addressOf(link, nic.address);
  if (own != nullptr && own->ofItsLink) {
    findings.push_back(
        {nic.device,
         fmt::format("{} uses {}, an address of its link alone (169.254.0.0/16)", what, own->text),
         "only nodes on the same cable or switch are reached",
         fmt::format("give it an address: ip addr add ADDRESS/24 dev {}", link.name)});
  }
}

void judgeOne(const NetworkSnapshot& network, const UsedNic& rail,
              std::vector<NetworkFinding>& findings) {
  const NetworkLink* const link = network.find(rail.device);
  if (link == nullptr) return;
  const NetworkLink& card = cardOf(network, *link);
  if (link->loopback) {
    findings.push_back({rail.device, "is the loopback interface", "no other node is reached",
                        "name interfaces of the network in FAULTLINE_NICS"});
  }
  if (card.kind == "bond" || card.kind == "team") {
    const auto ports = portsOf(network, card);
    findings.push_back(
        {rail.device,
         fmt::format("is {}a {} of {} ports", link == &card ? "" : card.name + ", ", card.kind,
                     ports.size()),
         "one rail: which of its ports carries what, and what happens when one fails, is the "
         "kernel's choice and takes as long as its monitoring does (miimon)",
         "for rails that outlive a port, take the bond apart and give each port an address"});
  }
  if (isContainerBridge(network, *link)) {
    findings.push_back({rail.device, "is a bridge of containers or guests of this host",
                        "no other node is reached, and its address is often the same on each",
                        fmt::format("leave {} out of FAULTLINE_NICS", link->name),
                        /*refused=*/false, /*severe=*/true});
  }
  if (link->infiniband || card.infiniband) {
    findings.push_back({rail.device, "is IPoIB: TCP over InfiniBand",
                        "slower than verbs, and one core carries some 20 to 40 Gbit/s",
                        "nothing has to be done; the largest MTU that all nodes have helps"});
  }
  judgeAddress(*link, rail, "the rail", findings);
}

/// Rails whose packets need a route of their own, and do not come to one.
void judgeRoutes(const NetworkSnapshot& network, const std::vector<UsedNic>& rails,
                 std::vector<NetworkFinding>& findings) {
  struct Judged {
    const UsedNic* rail;
    const NetworkLink* link;
    const NetworkAddress* own;
    WaysBeyond ways;
  };
  std::vector<Judged> all;
  for (const UsedNic& rail : rails) {
    const NetworkLink* const link = network.find(rail.device);
    const NetworkAddress* const own = link == nullptr ? nullptr : addressOf(*link, rail.address);
    // What belongs to a VRF looks in that one's table.
    const NetworkLink* const master = link == nullptr ? nullptr : network.find(link->master);
    if (own == nullptr || link->loopback || (master != nullptr && master->kind == "vrf")) continue;
    all.push_back({&rail, link, own, waysBeyond(network, *link, *own)});
  }
  const bool routed =
      std::ranges::any_of(all, [](const Judged& one) { return one.ways.ofTheirOwn(); });
  for (const Judged& one : all) {
    const bool leads = !one.ways.notFound.empty();
    if (!one.ways.found.empty() || (!leads && !routed)) continue;
    const std::string subnet =
        fmt::format("{}/{}", transport::tcp::formatAddress(one.own->ipv4 & maskOf(one.own->prefix)),
                    one.own->prefix);
    const std::string none = fmt::format("no route from {} over {} leads beyond {}", one.own->text,
                                         one.link->name, subnet);
    const int table = leads ? one.ways.notFound.front()->table : 0;
    findings.push_back(
        {one.rail->device,
         leads ? fmt::format("{}: no `ip rule` leads to table {}, which has one", none, table)
               : none + ", as those of other rails do",
         "nodes of other subnets are not reached over this rail",
         leads ? fmt::format("ip rule add from {} table {}", one.own->text, table)
               : fmt::format("ip route add default via GATEWAY dev {0} table NUMBER; ip rule add "
                             "from {1} table NUMBER",
                             one.link->name, one.own->text),
         /*refused=*/false, /*severe=*/true});
  }
}

/// `onLoopback`: all rails are, as for a trial on one machine.
void judgeManagement(const NetworkSnapshot& network, const UsedNic& management, bool onLoopback,
                     std::vector<NetworkFinding>& findings) {
  const NetworkLink* const link = network.find(management.device);
  if (link == nullptr) return;
  const bool bridge = isContainerBridge(network, *link);
  if (bridge || (link->loopback && !onLoopback)) {
    findings.push_back(
        {management.device,
         fmt::format(
             "carries management, and is {}",
             bridge ? "a bridge of containers or guests of this host" : "the loopback interface"),
         "processes of other nodes are not met, and its address is often the same on each",
         "name another interface in FAULTLINE_MANAGEMENT", /*refused=*/false, /*severe=*/true});
  }
  const NetworkLink* const master = network.find(link->master);
  if (master != nullptr && master->kind == "vrf") {
    findings.push_back({management.device,
                        fmt::format("carries management, and belongs to the VRF {}", master->name),
                        "a process outside of the VRF cannot use its address",
                        fmt::format("start the job inside it: ip vrf exec {} ...", master->name)});
  }
}

/// What has no IPv4 address, and might have been meant as a rail.
void judgeOthers(const NetworkSnapshot& network, const std::vector<UsedNic>& rails,
                 std::vector<NetworkFinding>& findings) {
  for (const NetworkLink& link : network.links) {
    const bool used = std::ranges::find(rails, link.name, &UsedNic::device) != rails.end();
    if (used || !link.up || link.loopback) continue;
    const bool four = std::ranges::any_of(
        link.addresses, [](const NetworkAddress& address) { return address.ipv4 != 0; });
    const auto six = std::ranges::find_if(link.addresses, [](const NetworkAddress& address) {
      return address.ipv4 == 0 && !address.ofItsLink;
    });
    if (four || six == link.addresses.end()) continue;
    findings.push_back({link.name,
                        fmt::format("has an IPv6 address ({}) and none of IPv4", six->text),
                        "it cannot be a rail: rails are IPv4 for now",
                        fmt::format("ip addr add ADDRESS/24 dev {}, on each node", link.name)});
  }
}

}  // namespace

bool isNameOfContainerBridge(const std::string& name) {
  constexpr std::array<std::string_view, 7> kPrefixes{"docker", "virbr", "podman", "cni",
                                                      "lxcbr",  "lxdbr", "incusbr"};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  constexpr std::string_view kDocker = "br-";  // and twelve digits of the network's number
  constexpr std::size_t kDigits = 12;
  return name.starts_with(kDocker) && name.size() == kDocker.size() + kDigits &&
         name.find_first_not_of("0123456789abcdef", kDocker.size()) == std::string::npos;
}

bool isContainerBridge(const NetworkSnapshot& network, const NetworkLink& link) {
  if (link.kind != "bridge") return false;
  if (isNameOfContainerBridge(link.name)) return true;
  return std::ranges::none_of(portsOf(network, link),
                              [](const NetworkLink* port) { return leavesTheHost(*port); });
}

std::vector<NetworkFinding> judgeNetwork(const NetworkSnapshot& network,
                                         const std::vector<UsedNic>& rails,
                                         const UsedNic& management) {
  std::vector<NetworkFinding> findings;
  for (std::size_t one = 0; one < rails.size(); ++one) {
    judgeOne(network, rails[one], findings);
    for (std::size_t other = one + 1; other < rails.size(); ++other) {
      judgeTwo(network, rails[one], rails[other], findings);
    }
  }
  const bool onLoopback = std::ranges::all_of(rails, [&](const UsedNic& rail) {
    const NetworkLink* const link = network.find(rail.device);
    return link != nullptr && link->loopback;
  });
  judgeRoutes(network, rails, findings);
  judgeManagement(network, management, onLoopback, findings);
  judgeOthers(network, rails, findings);
  return findings;
}

}  // namespace faultline::fabric

#include "harness/site/hosts/choose_rails.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/text.h"
#include "base/units.h"

namespace faultline::hosts {
namespace {

using wire::HostFacts;
using wire::HostPort;

constexpr int kAddressBits = 32;
constexpr int kLoopbackRails = 2;  // where nobody says how many

/// "10.1.0.3/24"
struct Address {
  std::string text{};  // without the length
  std::string subnet{};
};

std::optional<Address> addressOf(const std::string& written) {
  const std::size_t slash = written.find('/');
  if (slash == std::string::npos) return std::nullopt;
  Address address{.text = written.substr(0, slash)};
  int length = 0;
  const char* const end = written.data() + written.size();
  const auto [at, error] = std::from_chars(written.data() + slash + 1, end, length);
  in_addr binary{};
  if (error != std::errc() || at != end || length < 0 || length > kAddressBits ||
      ::inet_pton(AF_INET, address.text.c_str(), &binary) != 1) {
    return std::nullopt;
  }
  const std::uint32_t mask = length == 0 ? 0 : ~std::uint32_t{0} << (kAddressBits - length);
  binary.s_addr = htonl(ntohl(binary.s_addr) & mask);
  char subnet[INET_ADDRSTRLEN];
  ::inet_ntop(AF_INET, &binary, subnet, sizeof subnet);
  address.subnet = fmt::format("{}/{}", subnet, length);
  return address;
}

std::optional<Address> firstAddress(const HostPort& port) {
  for (const std::string& written : port.addresses) {
    if (auto address = addressOf(written)) return address;
  }
  return std::nullopt;
}

const HostPort* findPort(const HostFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts.ports, name, &HostPort::name);
  return found == facts.ports.end() ? nullptr : &*found;
}

const HostPort* portWith(const HostFacts& facts, const std::string& address) {
  for (const HostPort& port : facts.ports) {
    for (const std::string& written : port.addresses) {
      if (const auto own = addressOf(written); own && own->text == address) return &port;
    }
  }
  return nullptr;
}

/// Why it carries nothing; empty: it may.
std::string whyUseless(const HostPort& port) {
  if (!port.up) return "is down";
  if (!port.carrier) return "has no carrier";
  return firstAddress(port) ? "" : "has no IPv4 address";
}

std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  return join(std::vector<std::string_view>(texts.begin(), texts.end()), separator);
}

std::string speedOf(const HostPort& port) {
  return port.speed == 0 ? "of unknown speed" : formatRate(port.speed);
}

/// "eth1 (10.1.0.0/24, 100Gbit, mtu 9000, ether, 0000:3b:00.0, mlx5_0)"
std::string inWords(const HostPort& port) {
  const auto address = firstAddress(port);
  std::string text =
      fmt::format("{} ({}, {}, mtu {}, {}", port.name, address ? address->subnet : "no address",
                  speedOf(port), port.mtu, port.link);
  if (!port.pci.empty()) text += ", " + port.pci;
  if (!port.rdma.empty()) text += ", " + port.rdma;
  return text + ")";
}

/// A port of each host.
using Ports = std::vector<const HostPort*>;

BitsPerSecond slowest(const Ports& ports) {
  return std::ranges::min(ports, {}, [](const HostPort* port) { return port->speed; })->speed;
}

bool allRdma(const Ports& ports) {
  return std::ranges::none_of(ports, [](const HostPort* port) { return port->rdma.empty(); });
}

class Chooser {
 public:
  Chooser(const HostsSpec& spec, const std::vector<HostFacts>& facts)
      : spec_(spec), facts_(facts) {}

  Result<Choice> choose() {
    RETURN_IF_ERROR(findManagement());
    const site::RailChoice& wish = spec_.railChoice;
    const bool named = !wish.names.empty() || !wish.byNode.empty();
    ASSIGN_OR_RETURN(const std::vector<Ports> rails, named ? namedRails() : foundRails());
    choice_.network.resize(facts_.size());
    choice_.rate = spec_.railRate;
    for (std::size_t rail = 0; rail < rails.size(); ++rail) {
      addRail(rail, rails[rail], named ? "named" : "found");
    }
    for (std::size_t host = 0; host < facts_.size(); ++host) {
      choice_.network[host].management = {management_[host]->name,
                                          firstAddressOf(*management_[host], host)};
    }
    choice_.words["management"] = sameOrEach(management_);
    if (!left_.empty()) choice_.words["not_rails"] = joined(left_, "; ");
    return std::move(choice_);
  }

 private:
  const std::string& name(std::size_t host) const { return spec_.names[host]; }

  /// That to which ssh came where it is on that port.
  std::string firstAddressOf(const HostPort& port, std::size_t host) const {
    const std::string& reached = facts_[host].reachedAt;
    for (const std::string& written : port.addresses) {
      if (const auto own = addressOf(written); own && own->text == reached) return reached;
    }
    return firstAddress(port)->text;
  }

  /// Null: it leads to no other host.
  static const HostPort* leadsToOthers(const HostPort* port) {
    return port == nullptr || port->link == "loopback" ? nullptr : port;
  }

  /// Or by a way that does not show.
  static bool reachedFromItself(const HostFacts& facts) {
    const HostPort* const port = portWith(facts, facts.reachedAt);
    return facts.reachedAt.empty() || (port != nullptr && port->link == "loopback");
  }

  /// The port in the subnet
  /// in which another host is reached. Null: there is none.
  const HostPort* besideOthers(std::size_t host) const {
    for (const HostFacts& other : facts_) {
      const HostPort* const port = leadsToOthers(portWith(other, other.reachedAt));
      if (port == nullptr) continue;
      for (const HostPort& own : facts_[host].ports) {
        if (leadsToOthers(&own) == nullptr || !whyUseless(own).empty()) continue;
        if (firstAddress(own)->subnet == subnetOf(*port, other.reachedAt)) return &own;
      }
    }
    return nullptr;
  }

  static std::string subnetOf(const HostPort& port, const std::string& address) {
    for (const std::string& written : port.addresses) {
      if (const auto own = addressOf(written); own && own->text == address) return own->subnet;
    }
    return "";
  }

  Status findManagement() {
    for (std::size_t host = 0; host < facts_.size(); ++host) {
      const HostFacts& facts = facts_[host];
      const std::string& wanted = spec_.management;
      const HostPort* port = nullptr;
      if (!wanted.empty()) {
        port = findPort(facts, wanted);
        if (port == nullptr) return noSuchPort(host, wanted, "management");
      } else {
        port = leadsToOthers(portWith(facts, facts.reachedAt));
        if (port == nullptr && reachedFromItself(facts)) port = besideOthers(host);
        if (port == nullptr) port = leadsToOthers(findPort(facts, facts.defaultRoute));
      }
      if (port == nullptr || port->link == "loopback") {
        return errorf(
            Code::kNotFound,
            "host {}: its management network is not found: {}, no other host's is known that has "
            "a subnet of it, and there is no default route: name it by 'management: NAME'",
            name(host),
            facts.reachedAt.empty()
                ? "no interface of it but loopback has an address of its name, as this machine "
                  "resolves it"
                : fmt::format("no interface of it but loopback has the address {} at which it is "
                              "reached",
                              facts.reachedAt));
      }
      if (const std::string why = whyUseless(*port); !why.empty()) {
        return errorf(Code::kNotFound, "host {}: {}, its management network, {}", name(host),
                      port->name, why);
      }
      management_.push_back(port);
    }
    return okStatus();
  }

  Status noSuchPort(std::size_t host, const std::string& wanted, std::string_view key) const {
    std::vector<std::string> names;
    for (const HostPort& port : facts_[host].ports) names.push_back(port.name);
    return errorf(Code::kInvalidArgument, "{}: host {} has no interface {}: it has {}", key,
                  name(host), wanted, joined(names, ", "));
  }

  Result<std::vector<Ports>> namedRails() const {
    const site::RailChoice& wish = spec_.railChoice;
    std::vector<Ports> rails;
    for (std::size_t host = 0; host < facts_.size(); ++host) {
      const auto own = wish.byNode.find(name(host));
      const std::vector<std::string>& names = own == wish.byNode.end() ? wish.names : own->second;
      rails.resize(names.size());
      for (std::size_t rail = 0; rail < names.size(); ++rail) {
        const HostPort* const port = findPort(facts_[host], names[rail]);
        if (port == nullptr) return noSuchPort(host, names[rail], "rails");
        if (const std::string why = whyUseless(*port); !why.empty()) {
          return errorf(Code::kNotFound, "rails: {} of host {} {}", port->name, name(host), why);
        }
        rails[rail].push_back(port);
      }
    }
    return rails;
  }

  /// Why this port is no rail; empty: it may be.
  std::string whyNoRail(std::size_t host, const HostPort& port) const {
    if (&port == management_[host]) return "is the management network";
    if (port.name == facts_[host].defaultRoute) return "leads to the default gateway";
    if (!port.kind.empty() && port.kind != "veth") return "is a " + port.kind;
    if (port.link != "ether" && port.link != "infiniband") {
      return "is neither Ethernet nor InfiniBand";
    }
    return whyUseless(port);
  }

  void leave(std::string text) {
    if (std::ranges::count(left_, text) == 0) left_.push_back(std::move(text));
  }

  Result<std::vector<Ports>> foundRails() {
    // By subnet, in the order of the first host's; a port counts once, by its first address.
    std::map<std::string, std::vector<const HostPort*>> bySubnet;
    for (std::size_t host = 0; host < facts_.size(); ++host) {
      for (const HostPort& port : facts_[host].ports) {
        if (port.link == "loopback") continue;
        if (const std::string why = whyNoRail(host, port); !why.empty()) {
          leave(fmt::format("{} of {} {}", port.name, name(host), why));
          continue;
        }
        std::vector<const HostPort*>& ports = bySubnet[firstAddress(port)->subnet];
        ports.resize(facts_.size());
        const HostPort* const before = ports[host];
        if (before == nullptr || before->speed < port.speed) ports[host] = &port;
        if (before == nullptr) continue;
        const HostPort& slower = ports[host] == before ? port : *before;
        leave(fmt::format("{} of {} is in the subnet of {}", slower.name, name(host),
                          ports[host]->name));
      }
    }
    std::vector<Ports> rails;
    for (const auto& [subnet, ports] : bySubnet) {
      const auto missing = std::ranges::find(ports, nullptr);
      if (missing == ports.end()) {
        rails.push_back(ports);
      } else {
        leave(fmt::format("nothing of {} is in {}",
                          name(static_cast<std::size_t>(missing - ports.begin())), subnet));
      }
    }
    std::ranges::stable_sort(rails, [](const Ports& a, const Ports& b) {
      if (slowest(a) != slowest(b)) return slowest(a) > slowest(b);
      if (allRdma(a) != allRdma(b)) return allRdma(a);
      if (a.front()->pci != b.front()->pci) return a.front()->pci < b.front()->pci;
      return a.front()->name.size() != b.front()->name.size()
                 ? a.front()->name.size() < b.front()->name.size()
                 : a.front()->name < b.front()->name;
    });
    return cut(std::move(rails));
  }

  /// To so many as are wanted.
  Result<std::vector<Ports>> cut(std::vector<Ports> rails) {
    if (rails.empty()) {
      return errorf(
          Code::kNotFound,
          "no rails are found: no subnet has an interface of each host ({}); name them by "
          "'rails: [NAME, ...]'",
          left_.empty() ? "there are no others" : joined(left_, "; "));
    }
    std::size_t wanted = static_cast<std::size_t>(spec_.rails);
    if (spec_.railChoice.automatic) {
      const BitsPerSecond fastest = slowest(rails.front());
      wanted = static_cast<std::size_t>(
          std::ranges::count(rails, fastest, [](const Ports& ports) { return slowest(ports); }));
      wanted = std::min(wanted, static_cast<std::size_t>(kMost.rails));
    }
    if (rails.size() < wanted) {
      return errorf(Code::kNotFound,
                    "{} rails are wanted, and {} are found ({}); name them by 'rails: [NAME, ...]'",
                    wanted, rails.size(),
                    left_.empty() ? "there are no others" : joined(left_, "; "));
    }
    for (std::size_t rail = wanted; rail < rails.size(); ++rail) {
      leave(fmt::format(
          "{} is {}", inWords(*rails[rail].front()),
          spec_.railChoice.automatic ? "slower than the rails" : "one more than asked for"));
    }
    rails.resize(wanted);
    return rails;
  }

  void addRail(std::size_t rail, const Ports& ports, std::string_view how) {
    for (std::size_t host = 0; host < ports.size(); ++host) {
      choice_.network[host].rails.push_back({ports[host]->name, firstAddress(*ports[host])->text});
    }
    const BitsPerSecond rate = slowest(ports);
    if (spec_.railRate == 0) choice_.rate = rail == 0 ? rate : std::min(choice_.rate, rate);
    choice_.words[fmt::format("rail_{}", rail)] = fmt::format("{}: {}", how, sameOrEach(ports));
  }

  /// "eth1 (...) on all hosts", or each with its host.
  std::string sameOrEach(const Ports& ports) const {
    std::vector<std::string> all;
    for (std::size_t host = 0; host < ports.size(); ++host) {
      all.push_back(fmt::format("{} of {}", inWords(*ports[host]), name(host)));
    }
    const bool same = std::ranges::all_of(
        ports, [&](const HostPort* port) { return inWords(*port) == inWords(*ports.front()); });
    return same ? inWords(*ports.front()) + " of all hosts" : joined(all, ", ");
  }

  const HostsSpec& spec_;
  const std::vector<HostFacts>& facts_;
  Ports management_;
  std::vector<std::string> left_;  // what is no rail, and why
  Choice choice_;
};

}  // namespace

Result<Choice> chooseRails(const HostsSpec& spec, const std::vector<HostFacts>& facts) {
  return Chooser(spec, facts).choose();
}

Choice loopbackRails(const HostsSpec& spec) {
  constexpr const char* kLoopback = "lo";
  Choice choice;
  const int rails = spec.railChoice.automatic ? kLoopbackRails : spec.rails;
  // "127.100.0.1" to "127.100.0.250", "127.100.1.1"
  const auto address = [](int network, std::size_t host) {
    constexpr std::size_t kOfAByte = 250;
    return fmt::format("127.{}.{}.{}", network, host / kOfAByte, host % kOfAByte + 1);
  };
  for (std::size_t host = 0; host < spec.names.size(); ++host) {
    site::NodeNetwork& node = choice.network.emplace_back();
    node.management = {kLoopback, address(100, host)};
    for (int rail = 0; rail < rails; ++rail) {
      node.rails.push_back({kLoopback, address(101 + rail, host)});
    }
  }
  choice.rate = spec.railRate;
  choice.words["rails"] = fmt::format(
      "{} addresses of loopback: all hosts are this machine, whose ranks reach each other through "
      "memory; nothing counts what a rail carries",
      rails);
  return choice;
}

}  // namespace faultline::hosts

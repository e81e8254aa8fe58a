#include "resilient_ccl/nccl/device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <tuple>

#include "resilient_ccl/channel/hearing.h"

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kLinkLocal = 0xa9fe;  // 169.254.0.0/16, RFC 3927

std::string firstLine(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

template <typename T>
bool parseWhole(std::string_view text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// "0000:17:00.1" without the function: 0x00001700; "02:42:ac:11:00:02" as a number.
std::uint64_t hexDigits(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ':') digits += c;
  }
  std::uint64_t value = 0;
  return parseWhole(digits, value, 16) ? value : 0;
}

/// "0000:17:00.1".
bool isPciFunction(std::string_view name) {
  constexpr std::size_t kShortest = 12;
  const std::size_t colons = static_cast<std::size_t>(std::ranges::count(name, ':'));
  return name.size() >= kShortest && name[name.size() - 2] == '.' && colons == 2 &&
         name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

/// The nearest PCI function at or above a device's real path; empty: there is none.
std::filesystem::path pciFunctionOf(std::filesystem::path device) {
  while (device.has_relative_path() && !isPciFunction(device.filename().string())) {
    device = device.parent_path();
  }
  return device.has_relative_path() ? device : std::filesystem::path();
}

std::string namesOf(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const Interface& one : interfaces) {
    const std::string without = one.address != 0    ? ""
                                : !one.ipv6.empty() ? fmt::format(" (IPv6 alone: {})", one.ipv6)
                                                    : " (no IPv4 address)";
    names.push_back(one.name + (one.up ? "" : " (down)") + without +
                    (one.ofContainers ? " (a bridge of containers)" : ""));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// Whether a list that includes has the whole name.
bool namesWhole(std::string_view rules, std::string_view name) {
  if (rules.starts_with('^')) return false;
  if (rules.starts_with('=')) rules.remove_prefix(1);
  while (!rules.empty()) {
    const std::size_t end = std::min(rules.find(','), rules.size());
    if (rules.substr(0, end) == name) return true;
    rules.remove_prefix(std::min(end + 1, rules.size()));
  }
  return false;
}

/// By its name, or by the label of one of its addresses, which it has then.
std::optional<Interface> findNamed(const std::vector<Interface>& interfaces,
                                   const std::string& name) {
  for (const Interface& one : interfaces) {
    if (one.name == name) return one;
    const auto labelled = std::ranges::find(one.labels, name, &Interface::Labelled::label);
    if (labelled == one.labels.end()) continue;
    Interface found = one;
    found.address = labelled->address;
    found.prefix = labelled->prefix;
    return found;
  }
  return std::nullopt;
}

/// Why what a variable names cannot be used; OK: it can.
Status checkNamed(const std::string& variable, const std::string& name,
                  const std::optional<Interface>& found, const std::vector<Interface>& interfaces) {
  if (!found) {
    return errorf(Code::kNotFound, "{} {}, which is no interface with an IPv4 address; here are {}",
                  variable, name, namesOf(interfaces));
  }
  if (found->address != 0) return okStatus();
  if (!found->master.empty()) {
    return errorf(Code::kNotFound,
                  "{} {}, which is a port of {} and has no address of its own: name {}", variable,
                  name, found->master, found->master);
  }
  if (!found->ipv6.empty()) {
    return errorf(
        Code::kNotFound,
        "{} {}, which has the IPv6 address {} and none of IPv4. Rails and management are "
        "IPv4 for now: give it one on each node (ip addr add ADDRESS/24 dev {}), or leave "
        "the job to NCCL's own network (unset NCCL_NET and NCCL_NET_PLUGIN)",
        variable, name, found->ipv6, name);
  }
  return errorf(Code::kNotFound,
                "{} {}, which has no IPv4 address: give it one (ip addr add ADDRESS/24 dev {}), or "
                "name another one; here are {}",
                variable, name, name, namesOf(interfaces));
}

/// Where only IPv6 would do, what to do about it.
std::string adviceOfIpv6(const std::vector<Interface>& interfaces) {
  for (const Interface& one : interfaces) {
    if (!one.up || one.loopback || one.address != 0 || one.ipv6.empty()) continue;
    return fmt::format(
        ". {} has the IPv6 address {} and none of IPv4; rails and management are IPv4 for now: "
        "give it one on each node (ip addr add ADDRESS/24 dev {}), or leave the job to NCCL's own "
        "network (unset NCCL_NET and NCCL_NET_PLUGIN)",
        one.name, one.ipv6, one.name);
  }
  return "";
}

/// Whether a list that includes has the name, or its beginning: one that excludes means nothing
/// that it does not name.
bool meansByName(const std::string& rules, const std::string& name) {
  return !rules.starts_with('^') && rules.find_first_not_of('=') != std::string::npos &&
         takesInterface(rules, name);
}

/// What reaches no other node is used only where it is meant.
bool byAccident(const Interface& one, const std::string& rules) {
  if (one.loopback) return !namesWhole(rules, one.name);
  return one.ofContainers && !meansByName(rules, one.name);
}

bool isOfItsLink(const Interface& one) { return one.address >> 16 == kLinkLocal; }

}  // namespace

bool takesInterface(const std::string& rules, const std::string& name) {
  if (rules.empty()) return !takesInterface("lo,docker,virbr", name);
  std::string_view list = rules;
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const bool whole = list.starts_with('=');
  if (whole) list.remove_prefix(1);
  bool any = list.empty();
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    // A port behind the name ("mlx5_0:1") is of other transports.
    const std::string_view word = list.substr(0, std::min(end, list.find(':')));
    if (!word.empty() && (whole ? name == word : name.starts_with(word))) any = true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return any != excludes;
}

Result<std::vector<Interface>> chooseRails(const std::vector<Interface>& interfaces,
                                           const std::vector<std::string>& named,
                                           const std::string& rules) {
  std::vector<Interface> rails;
  for (const std::string& name : named) {
    const auto found = findNamed(interfaces, name);
    RETURN_IF_ERROR(checkNamed("FAULTLINE_NICS names", name, found, interfaces));
    if (std::ranges::find(rails, found->name, &Interface::name) != rails.end()) {
      return errorf(Code::kInvalidArgument, "FAULTLINE_NICS names {} twice{}", found->name,
                    name == found->name ? "" : fmt::format(": {} is a label of its", name));
    }
    rails.push_back(*found);
  }
  for (const Interface& one : interfaces) {
    if (!named.empty() || !one.up || one.address == 0) continue;
    if (byAccident(one, rules)) continue;
    if (takesInterface(rules, one.name)) rails.push_back(one);
  }
  // One of a server's own controller, mostly, the same on each node.
  const auto ofTheirLink = std::ranges::count_if(rails, isOfItsLink);
  if (named.empty() && rules.empty() && ofTheirLink < std::ssize(rails)) {
    std::erase_if(rails, isOfItsLink);
  }
  if (rails.empty()) {
    return errorf(Code::kNotFound,
                  "no interface can be a rail{}; here are {}: name some in FAULTLINE_NICS{}",
                  rules.empty() ? "" : fmt::format(" (NCCL_SOCKET_IFNAME={})", rules),
                  namesOf(interfaces), adviceOfIpv6(interfaces));
  }
  if (rails.size() > channel::kMaxRails) {
    return errorf(Code::kNotFound,
                  "{} interfaces would be rails ({}), {} at most can: name some in FAULTLINE_NICS",
                  rails.size(), namesOf(rails), channel::kMaxRails);
  }
  return rails;
}

Result<Interface> chooseManagement(const std::vector<Interface>& interfaces,
                                   const std::string& named, const std::string& rules,
                                   const std::vector<Interface>& rails) {
  if (!named.empty()) {
    const auto found = findNamed(interfaces, named);
    if (!found) {
      return errorf(Code::kNotFound,
                    "FAULTLINE_MANAGEMENT={} is no interface with an IPv4 address; here are {}",
                    named, namesOf(interfaces));
    }
    RETURN_IF_ERROR(checkNamed("FAULTLINE_MANAGEMENT names", named, found, interfaces));
    return *found;
  }
  const auto usable = [&](const Interface& one) {
    return one.up && one.address != 0 &&
           std::ranges::find(rails, one.name, &Interface::name) == rails.end();
  };
  for (const Interface& one : interfaces) {
    if (rules.empty() || !usable(one) || byAccident(one, rules)) continue;
    if (takesInterface(rules, one.name)) return one;
  }
  for (const Interface& one : interfaces) {
    const bool meant = !one.loopback && !isOfItsLink(one) && !one.ofContainers;
    if (usable(one) && meant && takesInterface("", one.name)) return one;
  }
  return rails.front();
}

std::vector<Interface> interfacesOf(const fabric::NetworkSnapshot& network) {
  std::vector<Interface> interfaces;
  for (const fabric::NetworkLink& link : network.links) {
    Interface one{.name = link.name, .address = 0, .up = link.up, .loopback = link.loopback};
    one.ofContainers = fabric::isContainerBridge(network, link);
    const fabric::NetworkLink* const master = network.find(link.master);
    if (master != nullptr && master->kind != "vrf") one.master = master->name;
    const auto rank = [&](const fabric::NetworkAddress& address) {
      const bool labelled = !address.label.empty() && address.label != link.name;
      return std::tuple(labelled, address.ofItsLink, address.secondary);
    };
    const fabric::NetworkAddress* best = nullptr;
    for (const fabric::NetworkAddress& address : link.addresses) {
      if (address.ipv4 == 0) {
        if (!address.ofItsLink && one.ipv6.empty()) one.ipv6 = address.text;
        continue;
      }
      if (best == nullptr || rank(address) < rank(*best)) best = &address;
      if (!address.label.empty() && address.label != link.name) {
        one.labels.push_back({address.label, address.ipv4, address.prefix});
      }
    }
    if (best != nullptr) {
      one.address = best->ipv4;
      one.prefix = best->prefix;
    }
    if (one.address != 0 || !one.ipv6.empty() || !one.master.empty()) {
      interfaces.push_back(std::move(one));
    }
  }
  return interfaces;
}

Result<std::vector<Interface>> listInterfaces() {
  ASSIGN_OR_RETURN(const fabric::NetworkSnapshot network, fabric::readNetwork());
  return interfacesOf(network);
}

std::string presentName(const fabric::NetworkSnapshot& network, const Interface& rail) {
  const auto has = [&](const fabric::NetworkLink& link) {
    return std::ranges::find(link.addresses, rail.address, &fabric::NetworkAddress::ipv4) !=
           link.addresses.end();
  };
  const fabric::NetworkLink* const own = network.find(rail.name);
  if (rail.address == 0 || (own != nullptr && has(*own))) return rail.name;
  const auto found = std::ranges::find_if(network.links, has);
  return found == network.links.end() ? rail.name : found->name;
}

std::vector<fabric::NetworkFinding> networkFindings(const fabric::NetworkSnapshot& network,
                                                    const std::vector<Interface>& rails,
                                                    const Interface& management) {
  std::vector<fabric::UsedNic> used;
  for (const Interface& rail : rails) used.push_back({rail.name, rail.address});
  return fabric::judgeNetwork(network, used, {management.name, management.address});
}

Device inspect(const Interface& interface, const std::string& sysfs) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(sysfs) / "class" / "net" / interface.name;
  Device device{.interface = interface, .pciPath = {}};
  device.guid = hexDigits(firstLine(folder / "address"));
  std::error_code error;
  const fs::path real = fs::canonical(folder / "device", error);
  const fs::path function = error ? fs::path() : pciFunctionOf(real);
  if (!function.empty()) {
    // "0000:17:00.1": a card's functions share its ports' way to the processor.
    const std::string address = function.filename().string();
    device.pciPath = function.string();
    device.guid = hexDigits(address.substr(0, address.find('.')));
    // A card has a function for each of its ports, or one whose ports `dev_port` counts; some
    // drivers of the former count in both. NCCL takes two NICs with the same guid and port for one.
    (void)parseWhole(address.substr(address.find('.') + 1), device.port);
  }
  int speed = 0;
  const bool known = parseWhole(firstLine(folder / "speed"), speed) && speed > 0;
  device.speed = known ? speed : kUnknownSpeed;
  int port = 0;
  if (parseWhole(firstLine(folder / "dev_port"), port)) device.port = std::max(device.port, port);
  if (!parseWhole(firstLine(function / "numa_node"), device.numaNode)) device.numaNode = -1;
  return device;
}

}  // namespace faultline::nccl

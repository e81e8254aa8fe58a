#include "harness/cli/nccl_bootstrap.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::cli {
namespace {

std::string inOneLine(const std::vector<std::string>& words) {
  return join(std::vector<std::string_view>(words.begin(), words.end()), ", ");
}

/// What NCCL takes with NCCL_SOCKET_IFNAME as it is, or without it.
std::vector<std::string> socketInterfaces(const std::string& rules,
                                          const std::vector<InterfaceAddress>& interfaces) {
  if (rules.size() > 1) return interfacesOfList(rules, interfaces);  // one character is none
  for (const char* const list : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}) {
    if (auto found = interfacesOfList(list, interfaces); !found.empty()) return found;
  }
  return {};
}

/// The interface that reaches the host of NCCL_COMM_ID, an address or a name, without a router, as
/// NCCL wants it; else what is wrong.
Result<std::string> interfaceTo(const std::string& communicatorId,
                                const MachineInterfaces& interfaces) {
  const std::string host = communicatorId.substr(0, communicatorId.rfind(':'));
  const auto parsed = transport::tcp::parseAddress(host);
  std::optional<std::uint32_t> address;
  if (parsed.ok()) {
    address = *parsed;
  } else if (interfaces.resolve) {
    address = interfaces.resolve(host);
  }
  if (!address) {
    return errorf(Code::kNotFound, "{} of NCCL_COMM_ID={} has no IPv4 address", host,
                  communicatorId);
  }
  for (const InterfaceAddress& one : interfaces.running) {
    if ((one.address & one.mask) == (*address & one.mask)) return one.name;
  }
  return errorf(Code::kNotFound, "no interface is in the subnet of NCCL_COMM_ID={}",
                communicatorId);
}

std::optional<std::uint32_t> resolveHost(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return ntohl(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr);
}

std::vector<InterfaceAddress> runningInterfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> interfaces;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        one->ifa_netmask == nullptr || (one->ifa_flags & IFF_RUNNING) == 0) {
      continue;
    }
    const auto number = [](const sockaddr* address) {
      return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    };
    interfaces.push_back({one->ifa_name, number(one->ifa_addr), number(one->ifa_netmask)});
  }
  return interfaces;
}

}  // namespace

std::vector<std::string> interfacesOfList(const std::string& list,
                                          const std::vector<InterfaceAddress>& interfaces) {
  std::vector<std::string> names;
  for (const InterfaceAddress& one : interfaces) {
    if (nccl::takesInterface(list, one.name) && std::ranges::find(names, one.name) == names.end()) {
      names.push_back(one.name);
    }
  }
  return names;
}

BootstrapFinding judgeBootstrap(const nccl::Options::Environment& environment,
                                const MachineInterfaces& interfaces) {
  const auto options = nccl::Options::read(environment);
  if (!options.ok()) return {false, options.status().message()};
  const auto chosen =
      nccl::chooseRails(interfaces.plugins, options->nics, options->socketInterfaces);
  if (!chosen.ok()) return {false, chosen.status().message()};
  const auto management = nccl::chooseManagement(interfaces.plugins, options->management,
                                                 options->socketInterfaces, *chosen);
  if (!management.ok()) return {false, management.status().message()};
  std::vector<std::string> rails;
  for (const nccl::Interface& rail : *chosen) rails.push_back(rail.name);
  const std::string all_rails = inOneLine(rails);

  const auto communicator = environment("NCCL_COMM_ID");
  const std::string list = environment("NCCL_SOCKET_IFNAME").value_or("");
  const auto sockets = socketInterfaces(list, interfaces.running);
  std::string bootstrap = sockets.empty() ? "" : sockets.front();
  if (communicator) {
    const auto reaches = interfaceTo(*communicator, interfaces);
    if (!reaches.ok()) return {false, reaches.status().message()};
    bootstrap = *reaches;
  }
  if (list.find_first_of(" \t") != std::string::npos) {
    return {false, fmt::format("NCCL_SOCKET_IFNAME=\"{}\" has a blank, which NCCL takes for a part "
                               "of a name (the plugin does not): leave it out",
                               list)};
  }
  if (bootstrap.empty()) return {false, "no interface for it is running"};
  const auto isRail = [&](const std::string& name) {
    return std::ranges::find(rails, name) != rails.end();
  };
  const bool is_rail = isRail(bootstrap);
  BootstrapFinding finding{
      !is_rail,
      fmt::format("{}, {} ({}{})", bootstrap, is_rail ? "which is a rail" : "which is no rail",
                  options->nics.empty() ? "without FAULTLINE_NICS rails are " : "FAULTLINE_NICS: ",
                  all_rails)};
  if (finding.ok && isRail(management->name)) {
    finding.ok = false;
    finding.found += fmt::format(
        "; but the plugin's own processes meet over {}, which is one: name another interface in "
        "FAULTLINE_MANAGEMENT",
        management->name);
  }
  if (std::atoi(environment("NCCL_OOB_NET_ENABLE").value_or("").c_str()) == 0) return finding;
  const std::string devices = environment("NCCL_OOB_NET_IFNAME").value_or("");
  const bool any = std::ranges::any_of(rails, [&](const std::string& rail) {
    return devices.empty() || nccl::takesInterface(devices, rail);
  });
  if (any) {
    return {false,
            finding.found + "; after the first contact over the rails (NCCL_OOB_NET_ENABLE)"};
  }
  return {false, fmt::format("NCCL_OOB_NET_IFNAME={} means none of the rails ({}), and with "
                             "NCCL_OOB_NET_ENABLE NCCL will not begin",
                             devices, all_rails)};
}

BootstrapFinding findBootstrap() {
  const auto interfaces = nccl::listInterfaces();
  if (!interfaces.ok()) return {false, interfaces.status().message()};
  return judgeBootstrap(
      nccl::processEnvironment,
      {.running = runningInterfaces(), .plugins = *interfaces, .resolve = resolveHost});
}

}  // namespace faultline::cli

#include "harness/cli/nccl_bootstrap.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::cli {
namespace {

std::string inOneLine(const std::vector<std::string>& words) {
  return join(std::vector<std::string_view>(words.begin(), words.end()), ", ");
}

/// What NCCL takes with NCCL_SOCKET_IFNAME, or without it.
std::vector<std::string> socketInterfaces(const BootstrapVariables& variables,
                                          const std::vector<InterfaceAddress>& interfaces) {
  if (variables.socketInterfaces && !variables.socketInterfaces->empty()) {
    return interfacesOfList(*variables.socketInterfaces, interfaces);
  }
  for (const char* const list : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}) {
    if (auto found = interfacesOfList(list, interfaces); !found.empty()) return found;
  }
  return {};
}

/// The interface that reaches the address of NCCL_COMM_ID without a router; "" when none does.
std::string interfaceTo(const std::string& communicatorId,
                        const std::vector<InterfaceAddress>& interfaces) {
  const auto address =
      transport::tcp::parseAddress(communicatorId.substr(0, communicatorId.rfind(':')));
  if (!address.ok()) return "";
  const auto found = std::ranges::find_if(interfaces, [&](const InterfaceAddress& one) {
    return (one.address & one.mask) == (*address & one.mask);
  });
  return found == interfaces.end() ? "" : found->name;
}

std::optional<std::string> variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
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

BootstrapFinding judgeBootstrap(const BootstrapVariables& variables,
                                const std::vector<InterfaceAddress>& interfaces) {
  const std::vector<std::string> sockets = socketInterfaces(variables, interfaces);
  std::string bootstrap = sockets.empty() ? "" : sockets.front();
  if (variables.communicatorId) bootstrap = interfaceTo(*variables.communicatorId, interfaces);
  if (bootstrap.empty()) {
    return {false, variables.communicatorId
                       ? fmt::format("no interface is in the subnet of NCCL_COMM_ID={}",
                                     *variables.communicatorId)
                       : "no interface for it is running"};
  }
  const bool named = variables.rails && !variables.rails->empty();
  const std::vector<std::string> rails =
      named ? interfacesOfList("=" + *variables.rails, interfaces) : sockets;
  const bool is_rail = std::ranges::find(rails, bootstrap) != rails.end();
  const std::string all_rails = rails.empty() ? "none" : inOneLine(rails);
  BootstrapFinding finding{
      !is_rail,
      fmt::format("{}, {} ({}{})", bootstrap, is_rail ? "which is a rail" : "which is no rail",
                  named ? "FAULTLINE_NICS: " : "without FAULTLINE_NICS rails are ", all_rails)};
  if (std::atoi(variables.overNetwork.value_or("").c_str()) == 0) return finding;
  const std::string devices = variables.networkDevices.value_or("");
  const bool any = std::ranges::any_of(rails, [&](const std::string& rail) {
    return devices.empty() || nccl::takesInterface(devices, rail);
  });
  if (any) {
    finding.found += "; after the first contact over the rails (NCCL_OOB_NET_ENABLE)";
    return finding;
  }
  return {false, fmt::format("NCCL_OOB_NET_IFNAME={} means none of the rails ({}), and with "
                             "NCCL_OOB_NET_ENABLE NCCL will not begin",
                             devices, all_rails)};
}

BootstrapFinding findBootstrap() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {false, "the interfaces cannot be listed"};
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
  return judgeBootstrap({.socketInterfaces = variable("NCCL_SOCKET_IFNAME"),
                         .communicatorId = variable("NCCL_COMM_ID"),
                         .rails = variable("FAULTLINE_NICS"),
                         .overNetwork = variable("NCCL_OOB_NET_ENABLE"),
                         .networkDevices = variable("NCCL_OOB_NET_IFNAME")},
                        interfaces);
}

}  // namespace faultline::cli

#include "injector/safety/target.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>

#include "base/text.h"
#include "injector/netlink/ethtool.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"

namespace faultline::safety {
namespace {

bool sameMac(const std::string& one, const std::string& other) {
  return !one.empty() && ::strcasecmp(one.c_str(), other.c_str()) == 0;
}

/// Whether nothing that stays with an adapter speaks against it.
bool isSameAdapter(const Target& one, const Target& other) {
  return one.pci == other.pci && one.permanentMac == other.permanentMac;
}

bool isVirtual(const Target& target) { return target.pci.empty() && target.permanentMac.empty(); }

}  // namespace

bool isPciAddress(std::string_view text) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = std::string_view("0123456789abcdef").find(text[i]) != std::string_view::npos;
    if (kShape[i] == 'x' ? !digit : text[i] != kShape[i]) return false;
  }
  return true;
}

bool isAddress(std::string_view text) {
  const std::string plain(text.substr(0, text.find('%')));
  in6_addr binary{};
  if (::inet_pton(AF_INET6, plain.c_str(), &binary) == 1) return true;
  return plain == text && ::inet_pton(AF_INET, plain.c_str(), &binary) == 1;
}

std::string nameOf(const Target& target) {
  return target.pci.empty() ? fmt::format("{} (MAC {})", target.interface, target.mac)
                            : fmt::format("{} ({})", target.interface, target.pci);
}

Result<Target> choose(const std::vector<Target>& present, const Wish& wish) {
  std::vector<const Target*> found;
  std::vector<std::string_view> names;
  for (const Target& one : present) {
    names.push_back(one.interface);
    const bool meant = !wish.interface.empty() ? one.interface == wish.interface
                       : !wish.pci.empty()     ? one.pci == wish.pci
                                               : sameMac(wish.mac, one.mac);
    if (meant) found.push_back(&one);
  }
  const std::string& said = !wish.interface.empty() ? wish.interface
                            : !wish.pci.empty()     ? wish.pci
                                                    : wish.mac;
  if (found.empty()) {
    return errorf(
        Code::kNotFound, "there is no interface {} here{}", said,
        wish.interface.empty() ? "; there are " + join(names, ", ") : suggestion(said, names));
  }
  if (found.size() > 1) {
    names.clear();
    for (const Target* one : found) names.push_back(one->interface);
    return errorf(Code::kInvalidArgument, "{} are {}: name one of them, like --target if={}", said,
                  join(names, " and "), names.front());
  }
  return *found.front();
}

Result<Target> sameOf(const std::vector<Target>& present, const Target& target) {
  std::vector<const Target*> found;
  for (const Target& one : present) {
    if (one.netNamespace != target.netNamespace || !isSameAdapter(one, target)) continue;
    // A virtual interface has nothing else that stays with it: two things of three.
    const bool same = isVirtual(target)
                          ? sameMac(one.mac, target.mac) &&
                                (one.ifindex == target.ifindex || one.interface == target.interface)
                          : true;
    if (same) found.push_back(&one);
  }
  // Several functions of one adapter tell the same (representors do): the index decides.
  if (found.size() > 1) {
    std::erase_if(found, [&](const Target* one) { return one->ifindex != target.ifindex; });
  }
  if (found.size() == 1) return *found.front();
  const auto taken = std::ranges::find(present, target.interface, &Target::interface);
  if (taken != present.end() && taken->netNamespace != target.netNamespace) {
    return errorf(
        Code::kNotFound,
        "{} was struck in another network namespace (net:[{}]) than this one: run it there",
        nameOf(target), target.netNamespace);
  }
  if (taken != present.end()) {
    return errorf(Code::kNotFound, "{} is gone, and what is called {} now is another one ({})",
                  nameOf(target), target.interface, nameOf(*taken));
  }
  return errorf(Code::kNotFound, "{} is gone", nameOf(target));
}

Result<std::vector<Target>> presentTargets(netlink::Socket& socket) {
  ASSIGN_OR_RETURN(const std::uint64_t inside, netlink::namespaceId(socket.namespaceFd()));
  ASSIGN_OR_RETURN(const auto links, netlink::listNetDevices(socket));
  std::vector<Target> present;
  for (const netlink::NetDevice& link : links) {
    const auto told = netlink::readAdapter(socket, link.name);
    if (told.status().code() == Code::kNotFound) continue;  // gone since
    // What one driver refuses to tell must not keep others from being struck, or restored.
    const netlink::Adapter adapter = told.ok() ? *told : netlink::Adapter{};
    Target target{.interface = link.name,
                  .ifindex = link.ifindex,
                  .mac = fmt::format("{:02x}", fmt::join(link.mac, ":")),
                  .permanentMac = adapter.permanentMac,
                  .pci = isPciAddress(adapter.bus) ? adapter.bus : "",
                  .netNamespace = inside};
    present.push_back(std::move(target));
  }
  return present;
}

}  // namespace faultline::safety

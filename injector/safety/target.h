#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::safety {

/// An interface as somebody names it: one of these.
struct Wish {
  std::string interface {};  ///< "eth1"
  std::string pci{};         ///< "0000:17:00.0"
  std::string mac{};         ///< "02:00:00:00:00:01", of any case
};

/// An interface, bound to what stays with it: names and indexes change, and others may get them.
struct Target {
  std::string interface {};  ///< its name
  int ifindex = 0;
  std::string mac{};               ///< what it has now
  std::string permanentMac{};      ///< of its adapter; empty: it is virtual
  std::string pci{};               ///< likewise
  std::uint64_t netNamespace = 0;  ///< the number in `net:[4026531840]`
  bool operator==(const Target&) const = default;
};

template <typename V, typename T>
requires std::is_same_v<std::remove_const_t<T>, Target>
void visitFields(V& v, T& target) {
  v.required("interface", target.interface);
  v.required("ifindex", target.ifindex);
  v.required("mac", target.mac);
  v.required("permanent_mac", target.permanentMac);
  v.required("pci", target.pci);
  v.required("net_namespace", target.netNamespace);
}

/// Whether it is one, with its domain: "0000:17:00.0". Pure.
bool isPciAddress(std::string_view text);

/// Whether it is one of IPv4 or IPv6, perhaps with a scope. Pure.
bool isAddress(std::string_view text);

/// "eth1 (0000:17:00.0)", "eth1 (MAC 02:00:00:00:00:01)".
std::string nameOf(const Target& target);

/// The one of `present` that is meant. kNotFound when there is none, with what is meant perhaps;
/// kInvalidArgument when there are several. Pure.
Result<Target> choose(const std::vector<Target>& present, const Wish& wish);

/// The one of `present` that is the same interface as `target`, whatever it is called now.
/// kNotFound when it is gone, or another one has its name. Pure.
Result<Target> sameOf(const std::vector<Target>& present, const Target& target);

/// All interfaces of the socket's namespace.
Result<std::vector<Target>> presentTargets(netlink::Socket& socket);

}  // namespace faultline::safety

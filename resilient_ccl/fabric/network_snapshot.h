#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::fabric {

/// An address of an interface, IPv4 or IPv6.
struct NetworkAddress {
  std::string text;        ///< "10.0.0.1", "fd00::1"
  std::uint32_t ipv4 = 0;  ///< host byte order; 0: IPv6
  int prefix = 0;          ///< bits
  std::string label{};     ///< IFA_LABEL: "eth0:1", or the interface's name; of IPv4
  bool secondary = false;  ///< another one of the same subnet is before it
  bool ofItsLink = false;  ///< 169.254.0.0/16 (RFC 3927), fe80::/10
};

/// A network interface, and what the kernel does with it.
struct NetworkLink {
  int index = 0;
  std::string name{};
  std::string kind{};  ///< of virtual ones: "bond", "vlan", "bridge", "vrf", "veth", ...
  int master = 0;      ///< index of the bond, bridge or VRF that it is a port of; 0: none
  int lower = 0;       ///< index of what it stands on (of a VLAN its NIC); 0: none, or elsewhere
  bool up = false;
  bool loopback = false;
  bool infiniband = false;  ///< IPoIB
  int arpIgnore = 0;  ///< net.ipv4.conf, the larger of "all" and its own, as the kernel takes it
  int rpFilter = 0;
  std::vector<NetworkAddress> addresses{};
};

/// `ip rule`: what is sent from these IPv4 addresses, and through this device, looks here.
struct NetworkRule {
  std::uint32_t from = 0;  ///< host byte order
  int prefix = 0;          ///< bits; 0: any source
  int table = 0;
  std::string device{};  ///< empty: any
};

/// A route of a table that leads out through a device. Of those by gateways there is one for each
/// table and device.
struct NetworkRoute {
  int table = 0;
  int device = 0;        ///< index
  std::uint32_t to = 0;  ///< host byte order
  int prefix = 0;        ///< bits; 0: a default route
  bool gateway = false;
};

/// What this process's network namespace looks like.
struct NetworkSnapshot {
  std::vector<NetworkLink> links;
  std::vector<NetworkRule> rules;
  std::vector<NetworkRoute> routes{};

  const NetworkLink* find(const std::string& name) const;
  const NetworkLink* find(int index) const;
};

/// Reads it over rtnetlink, and from /proc/sys.
Result<NetworkSnapshot> readNetwork();
/// Of the same only links and their addresses.
Result<NetworkSnapshot> readAddresses();

}  // namespace faultline::fabric

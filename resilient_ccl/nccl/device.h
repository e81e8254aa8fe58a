#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::nccl {

/// A network interface with an IPv4 address, as the system shows it.
struct Interface {
  std::string name;
  std::uint32_t address = 0;  ///< host byte order
  bool up = false;
  bool loopback = false;
};

/// One NIC as NCCL gets to see it: a device of the plugin, and a rail of its fabrics.
struct Device {
  Interface interface;
  /// Real path in /sys of its PCI function, also where a driver's own device stands between the two
  /// (virtio). Empty: it is not on PCI.
  std::string pciPath;
  std::uint64_t guid = 0;  ///< of the card: its PCI address without the function, else its MAC
  int speed = 0;           ///< Mbit/s; kUnknownSpeed where the system does not say
  int port = 0;
  int numaNode = -1;  ///< that the card is at; -1: the system does not say
};

/// What NCCL's own socket transport takes a NIC for whose speed it cannot read.
inline constexpr int kUnknownSpeed = 10000;

/// Whether NCCL_SOCKET_IFNAME's rules take this interface: a list of prefixes with commas between
/// them; "^" before the list excludes, "=" means whole names ("=eth0,eth1", "^docker,lo",
/// "^=lo"). Empty: everything but lo, docker and virbr. A list without names means all, as NCCL has
/// it: "=" takes, and "^" excludes, everything.
bool takesInterface(const std::string& rules, const std::string& name);

/// The rails among `interfaces`: those that are `named`, in that order; without names those that
/// are up and that the rules take, in their own order. kNotFound says which is missing, or that
/// there are none, or more than kMaxRails, and what there is.
Result<std::vector<Interface>> chooseRails(const std::vector<Interface>& interfaces,
                                           const std::vector<std::string>& named,
                                           const std::string& rules);

/// Where processes meet: the interface that is `named`; else the first that is up, no rail, and
/// taken by `rules`, NCCL_SOCKET_IFNAME's, over which NCCL's own ranks meet; else the first other
/// one that is up, no rail, not loopback, and not with an address of its link alone (169.254); else
/// the first rail.
Result<Interface> chooseManagement(const std::vector<Interface>& interfaces,
                                   const std::string& named, const std::string& rules,
                                   const std::vector<Interface>& rails);

/// All IPv4 interfaces of this network namespace, each once.
Result<std::vector<Interface>> listInterfaces();

/// What `sysfs` (normally "/sys") tells of a rail.
Device inspect(const Interface& interface, const std::string& sysfs);

}  // namespace faultline::nccl

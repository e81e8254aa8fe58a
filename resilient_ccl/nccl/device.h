#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/fabric/network_findings.h"
#include "resilient_ccl/fabric/network_snapshot.h"

namespace faultline::nccl {

/// A network interface as the system shows it, with the IPv4 address that a rail over it uses.
struct Interface {
  std::string name;
  std::uint32_t address = 0;  ///< host byte order; 0: it has none
  bool up = false;
  bool loopback = false;
  /// Its other IPv4 addresses that have a label: "eth0:1". A label is no interface.
  struct Labelled {
    std::string label;
    std::uint32_t address = 0;
    int prefix = 0;
  };
  std::vector<Labelled> labels{};
  std::string ipv6{};  ///< an address that is not of its link alone; empty: none
  int prefix = 0;      ///< of the address's subnet, bits; 0: not known
  /// A bridge of containers or guests (`fabric::isContainerBridge`).
  bool ofContainers = false;
  std::string master{};  ///< the bond or bridge that it is a port of; empty: none
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
/// it: "=" takes, and "^" excludes, everything. Blanks are part of a name, as for NCCL.
bool takesInterface(const std::string& rules, const std::string& name);

/// The rails among `interfaces`: those that are `named`, in that order, by their names or by the
/// label of an address; without names those that are up, have an IPv4 address and that the rules
/// take, in their own order: the loopback interface only where a list has its whole name, a bridge
/// of containers only where a list that includes names it, and without rules none with an address
/// of its link alone while there are others. kNotFound says which is missing, or that there are
/// none, or more than kMaxRails, and what there is.
Result<std::vector<Interface>> chooseRails(const std::vector<Interface>& interfaces,
                                           const std::vector<std::string>& named,
                                           const std::string& rules);

/// Where processes meet: the interface that is `named`; else the first that is up, no rail, and
/// taken by `rules`, NCCL_SOCKET_IFNAME's, over which NCCL's own ranks meet, as rails are; else the
/// first other one that is up, no rail, not loopback, no bridge of containers, and not with an
/// address of its link alone (169.254); else the first rail.
Result<Interface> chooseManagement(const std::vector<Interface>& interfaces,
                                   const std::string& named, const std::string& rules,
                                   const std::vector<Interface>& rails);

/// The interfaces of a network namespace that have an address, or are ports of one that may, each
/// once. Of several IPv4 addresses that of the rail is the first that has no label of its own, is
/// not of the link alone (169.254), and is not the second one of its subnet. Pure.
std::vector<Interface> interfacesOf(const fabric::NetworkSnapshot& network);
/// The same of this process's network namespace.
Result<std::vector<Interface>> listInterfaces();

/// What the interface of a rail is called now: it may have been renamed since it was found, and
/// another one may have its name. Known by its address; the old name where nobody has that. Pure.
std::string presentName(const fabric::NetworkSnapshot& network, const Interface& rail);

/// fabric::judgeNetwork of these.
std::vector<fabric::NetworkFinding> networkFindings(const fabric::NetworkSnapshot& network,
                                                    const std::vector<Interface>& rails,
                                                    const Interface& management);

/// What `sysfs` (normally "/sys") tells of a rail.
Device inspect(const Interface& interface, const std::string& sysfs);

}  // namespace faultline::nccl

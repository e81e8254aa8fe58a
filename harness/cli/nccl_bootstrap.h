#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/options.h"

/// Over which interface NCCL's ranks find each other, and whether that is one whose faults a job is
/// to survive.
namespace faultline::cli {

/// An IPv4 address of a running interface of this machine, as getifaddrs() lists them.
struct InterfaceAddress {
  std::string name;
  std::uint32_t address = 0;  ///< host byte order
  std::uint32_t mask = 0;
};

/// The two lists of a machine's interfaces.
struct MachineInterfaces {
  std::vector<InterfaceAddress> running;  ///< of which NCCL's bootstrap takes one
  std::vector<nccl::Interface> plugins;   ///< of which the plugin takes its rails
  /// The IPv4 address of a host's name, in host byte order; nothing where it has none.
  std::function<std::optional<std::uint32_t>(const std::string& name)> resolve{};
};

/// Names of the interfaces that a list as in NCCL_SOCKET_IFNAME means (nccl::takesInterface), each
/// once, in the machine's order.
std::vector<std::string> interfacesOfList(const std::string& list,
                                          const std::vector<InterfaceAddress>& interfaces);

struct BootstrapFinding {
  bool ok = false;  ///< the bootstrap's interface is known, and is no rail
  std::string found;
};

/// As NCCL 2.28 chooses: NCCL_COMM_ID's subnet, else the first of NCCL_SOCKET_IFNAME, else the
/// first one named ib*, else the first that is neither docker*, lo nor virbr*, else whatever there
/// is. Rails, and the interface over which the plugin's own processes meet, which must be none of
/// them either, are what the plugin would take with this environment; when it would not begin, that
/// is what is found. NCCL_OOB_NET_ENABLE=1 leaves the first contact there, and puts the rest onto a
/// device of the network, here a rail, which NCCL_OOB_NET_IFNAME chooses; when it means none, NCCL
/// refuses to begin: never ok. Pure, but for `resolve`.
BootstrapFinding judgeBootstrap(const nccl::Options::Environment& environment,
                                const MachineInterfaces& interfaces);

/// The same of this process's environment and this machine's interfaces.
BootstrapFinding findBootstrap();

}  // namespace faultline::cli

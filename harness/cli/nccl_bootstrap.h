#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Over which interface NCCL's ranks find each other, and whether that is one whose faults a job is
/// to survive.
namespace faultline::cli {

/// An IPv4 address of this machine, as getifaddrs() lists them.
struct InterfaceAddress {
  std::string name;
  std::uint32_t address = 0;  ///< host byte order
  std::uint32_t mask = 0;
};

/// The variables that decide; nothing: not set.
struct BootstrapVariables {
  std::optional<std::string> socketInterfaces{};  ///< NCCL_SOCKET_IFNAME
  std::optional<std::string> communicatorId{};    ///< NCCL_COMM_ID, "10.0.0.1:29501"
  std::optional<std::string> rails{};             ///< FAULTLINE_NICS, names with commas between
  std::optional<std::string> overNetwork{};       ///< NCCL_OOB_NET_ENABLE, "1"
  std::optional<std::string> networkDevices{};  ///< NCCL_OOB_NET_IFNAME, of devices of the network
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
/// is. Without FAULTLINE_NICS all that NCCL_SOCKET_IFNAME means are rails. NCCL_OOB_NET_ENABLE=1
/// leaves the first contact there, and puts the rest onto a device of the network, here a rail,
/// which NCCL_OOB_NET_IFNAME chooses; when it means none, NCCL refuses to begin. Pure.
BootstrapFinding judgeBootstrap(const BootstrapVariables& variables,
                                const std::vector<InterfaceAddress>& interfaces);

/// The same of this process's environment and this machine's running interfaces.
BootstrapFinding findBootstrap();

}  // namespace faultline::cli

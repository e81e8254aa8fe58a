#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "resilient_ccl/fabric/network_snapshot.h"

namespace faultline::fabric {

/// An interface that a job uses, with the address that it uses there.
struct UsedNic {
  std::string device;
  std::uint32_t address = 0;  ///< host byte order
};

/// Something about a machine's network that a job with these rails should know.
struct NetworkFinding {
  std::string subject;   ///< "eth0, eth1"
  std::string cause;     ///< what was found
  std::string cost;      ///< what it does to a job
  std::string cure;      ///< what to do
  bool refused = false;  ///< a job over these rails does not work
  bool severe = false;   ///< a job of more than one node does not work
};

/// All that is to be said about these rails and the interface of management. Pure.
std::vector<NetworkFinding> judgeNetwork(const NetworkSnapshot& network,
                                         const std::vector<UsedNic>& rails,
                                         const UsedNic& management);

/// A bridge that connects containers or guests of this host: by its name, or because no port of it
/// stands on a device that leads elsewhere, as ends of veth pairs and taps do not. Such a bridge
/// often has the same address on every node. Pure.
bool isContainerBridge(const NetworkSnapshot& network, const NetworkLink& link);

/// Whether docker (docker0, br-0123456789ab), libvirt, podman, LXC or a CNI plugin names its
/// bridges so.
bool isNameOfContainerBridge(const std::string& name);

}  // namespace faultline::fabric

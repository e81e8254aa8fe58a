#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

/// What can be done to a device of which kind: decided here, without any I/O.
namespace faultline::rdma {

enum class DeviceClass {
  kRxe,            ///< RoCE in software: its packets are frames of a network interface
  kSiw,            ///< iWARP in software: its packets are the kernel's own TCP
  kMlx5Roce,       ///< ConnectX on Ethernet
  kOtherEthernet,  ///< another adapter with RoCE or iWARP of its own
  kInfiniband,     ///< the link is InfiniBand (or Omni-Path), whoever made the adapter
};

/// From the driver's number (enum rdma_driver_id) and the protocol that nldev tells.
DeviceClass classify(std::uint32_t driver_id, std::string_view protocol);

/// "rxe (software RoCE)", ...
std::string_view toString(DeviceClass device_class);

/// A device for the messages of what follows.
struct DeviceIdentity {
  std::string name;
  DeviceClass device_class = DeviceClass::kOtherEthernet;
};

/// Whether packets are made by the kernel, so that its traffic control sees them.
bool isSoftware(DeviceClass device_class);

/// The name that `rdma link add ... type` has for it; empty for hardware.
std::string_view linkType(DeviceClass device_class);

/// How packets can be made to vanish.
enum class DropMechanism {
  kTrafficControl,  ///< a filter or queue of the network interface
  kSteeringRule,    ///< a rule of mlx5 with the action "drop"
};

/// How a device can be made slow.
enum class RateMechanism {
  kTrafficControl,  ///< a shaper of the network interface
  kDcbMaxrate,      ///< the adapter's rate limit for each traffic class (IEEE 802.1Qaz)
};

/// kUnsupported, with the reason and what to do instead, where the class has no such way. In
/// particular traffic control is not for adapters: their packets never pass through it.
/// `only_roce`: all other frames are to pass.
Result<DropMechanism> dropMechanism(const DeviceIdentity& device, bool only_roce);
Result<RateMechanism> rateMechanism(const DeviceIdentity& device);
/// Whether the port follows its network interface.
Status requirePortOfNetdev(const DeviceIdentity& device);
Status requireDeletable(const DeviceIdentity& device);

/// Refuses mechanisms of traffic control (netem, tbf, htb, filters, nftables, XDP) for hardware.
/// `attempt` begins the message.
Status requireTrafficControl(const DeviceIdentity& device, std::string_view attempt);

}  // namespace faultline::rdma

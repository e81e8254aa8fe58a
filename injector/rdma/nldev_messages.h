#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injector/netlink/message.h"

/// RDMA devices as the kernel tells of them (RDMA netlink, its part "nldev": uapi
/// rdma/rdma_netlink.h). This file is the pure half: requests are built and answers are read here,
/// without a socket. What is read may be anything: attributes that are absent, cut or of another
/// kernel give empty values.
namespace faultline::rdma {

/// One RDMA device, e.g. "rxe0" or "mlx5_0".
struct Device {
  std::uint32_t index = 0;
  std::string name;
  std::uint32_t ports = 0;  ///< how many; they are counted from 1
  std::string protocol;     ///< "ib", "roce", "iw", ...
};

/// enum ib_port_state of the kernel (IBA 14.2.5.6, PortInfo.PortState). A kernel may send others.
enum class PortState : std::uint8_t { kNoChange, kDown, kInit, kArmed, kActive, kActiveDefer };

/// enum ib_port_phys_state of the kernel (PortInfo.PortPhysicalState).
enum class PhysicalState : std::uint8_t {
  kUnknown,
  kSleep,
  kPolling,   ///< looks for the other end: as after a pulled cable
  kDisabled,  ///< switched off
  kTraining,
  kLinkUp,
  kErrorRecovery,
  kPhyTest,
};

/// "ACTIVE", "DOWN", ...; "state 9" for what is not known.
std::string toString(PortState state);
std::string toString(PhysicalState state);

/// One port of a device, and the network interface behind it where there is one.
struct Port {
  std::uint32_t device_index = 0;
  std::string device;
  std::uint32_t number = 0;
  PortState state = PortState::kNoChange;
  PhysicalState physical = PhysicalState::kUnknown;
  int netdev_ifindex = 0;  ///< 0: none, or one of another network namespace
  std::string netdev;
};

/// One queue pair; without `pid` it is the kernel's own, or of a process that is not to be seen.
struct QueuePair {
  std::string device;
  std::uint32_t port = 0;  ///< 0: not bound to one yet
  std::uint32_t number = 0;
  std::optional<std::uint32_t> remote_number;  ///< of connected kinds
  std::string type;                            ///< "RC", "UD", "GSI", ...
  std::string state;                           ///< "INIT", "RTS", "ERR", ...
  std::optional<std::uint32_t> pid;
  std::string kernel_owner;  ///< "ib_core", ...
};

/// Where programs open the device, and which driver it is.
struct CharacterDevice {
  std::string name;             ///< below /dev/infiniband, e.g. "uverbs0"
  std::uint32_t driver_id = 0;  ///< enum rdma_driver_id (uapi rdma/ib_user_ioctl_verbs.h)
};

/// Counters of one port by their kernel names ("rcvd_pkts", "out_of_sequence", ...).
using Counters = std::map<std::string, std::uint64_t, std::less<>>;

netlink::Message askDevices();
netlink::Message askPorts(std::uint32_t device_index);
netlink::Message askPort(std::uint32_t device_index, std::uint32_t port);
netlink::Message askQueuePairs(std::uint32_t device_index);
/// Who has opened the device (each of its user contexts; Linux 5.12).
netlink::Message askContexts(std::uint32_t device_index);
/// How many objects of each kind the device has.
netlink::Message askResources(std::uint32_t device_index);
netlink::Message askCounters(std::uint32_t device_index, std::uint32_t port);
netlink::Message askCharacterDevice(std::uint32_t device_index);
/// A software device over a network interface; `type` is "rxe" or "siw".
netlink::Message addLink(std::string_view name, std::string_view type, std::string_view netdev);
netlink::Message deleteLink(std::uint32_t device_index);

Device parseDevice(const nlmsghdr* answer);
Port parsePort(const nlmsghdr* answer);
std::vector<QueuePair> parseQueuePairs(const nlmsghdr* answer);
/// The process ids.
std::vector<std::uint32_t> parseContexts(const nlmsghdr* answer);
/// By the kernel's names: "ctx", "qp", ...; those of all process namespaces are counted.
Counters parseResources(const nlmsghdr* answer);
Counters parseCounters(const nlmsghdr* answer);
CharacterDevice parseCharacterDevice(const nlmsghdr* answer);

}  // namespace faultline::rdma

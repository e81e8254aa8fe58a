#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "injector/netlink/socket.h"
#include "injector/rdma/nldev_messages.h"

/// RDMA netlink over a socket: the thin half of nldev_messages.h. `socket` is one that
/// openSocket() has made. Listing needs no privilege; adding and deleting devices needs
/// CAP_NET_ADMIN.
namespace faultline::rdma {

/// In the network namespace of the calling thread. kUnsupported when the kernel has no RDMA
/// (the module ib_core is not loaded).
Result<netlink::Socket> openSocket();

Result<std::vector<Device>> listDevices(netlink::Socket& socket);
/// kNotFound, with the names that exist, when there is no such device.
Result<Device> findDevice(netlink::Socket& socket, std::string_view name);
Result<std::vector<Port>> listPorts(netlink::Socket& socket, std::uint32_t device_index);
Result<Port> readPort(netlink::Socket& socket, std::uint32_t device_index, std::uint32_t port);
Result<std::vector<QueuePair>> listQueuePairs(netlink::Socket& socket, std::uint32_t device_index);
/// The queue pairs of one process on all devices.
Result<std::vector<QueuePair>> queuePairsOf(netlink::Socket& socket, std::uint32_t pid);
/// Who has the device open.
struct Holders {
  std::uint64_t contexts = 0;  ///< how often it is open
  /// Of those, the processes that can be seen: the kernel shows only those of one's own process
  /// namespace, and none of containers.
  std::vector<std::uint32_t> pids;
};
Result<Holders> readHolders(netlink::Socket& socket, std::uint32_t device_index);
/// kUnsupported when the driver has none.
Result<Counters> readCounters(netlink::Socket& socket, std::uint32_t device_index,
                              std::uint32_t port);
Result<CharacterDevice> readCharacterDevice(netlink::Socket& socket, std::uint32_t device_index);

Status createLink(netlink::Socket& socket, std::string_view name, std::string_view type,
                  std::string_view netdev);
/// Waits, and cannot be interrupted, until no process has the device open, where its driver cannot
/// take it away from them (rxe of Linux 6.1): ask readHolders() before.
Status removeLink(netlink::Socket& socket, const Device& device);

}  // namespace faultline::rdma

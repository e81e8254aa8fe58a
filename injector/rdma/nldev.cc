#include "injector/rdma/nldev.h"

#include <linux/netlink.h>

#include <algorithm>

#include "base/text.h"
#include "injector/netlink/namespace.h"

namespace faultline::rdma {

using netlink::Message;
using netlink::Socket;

Result<Socket> openSocket() {
  ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
  auto socket = Socket::open(here.get(), NETLINK_RDMA);
  if (socket.status().code() != Code::kUnsupported) return socket;
  return errorf(Code::kUnsupported,
                "{}: RDMA netlink: the kernel has no RDMA, or its module ib_core is not loaded",
                socket.status().message());
}

Result<std::vector<Device>> listDevices(Socket& socket) {
  Message message = askDevices();
  std::vector<Device> devices;
  RETURN_IF_ERROR(socket.dump(
      message, "list RDMA devices",
      [&](const nlmsghdr* answer) { devices.push_back(parseDevice(answer)); },
      [&] { devices.clear(); }));
  return devices;
}

Result<Device> findDevice(Socket& socket, std::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<Device> devices, listDevices(socket));
  std::vector<std::string_view> names;
  for (const Device& device : devices) {
    if (device.name == name) return device;
    names.push_back(device.name);
  }
  return errorf(Code::kNotFound, "there is no RDMA device '{}'{}", name,
                names.empty() ? std::string("; this machine has none") : suggestion(name, names));
}

Result<std::vector<Port>> listPorts(Socket& socket, std::uint32_t device_index) {
  Message message = askPorts(device_index);
  std::vector<Port> ports;
  RETURN_IF_ERROR(socket.dump(
      message, fmt::format("list the ports of RDMA device {}", device_index),
      [&](const nlmsghdr* answer) { ports.push_back(parsePort(answer)); }, [&] { ports.clear(); }));
  return ports;
}

Result<Port> readPort(Socket& socket, std::uint32_t device_index, std::uint32_t port) {
  Message message = askPort(device_index, port);
  Port found;
  RETURN_IF_ERROR(socket.ask(message,
                             fmt::format("read port {} of RDMA device {}", port, device_index),
                             [&](const nlmsghdr* answer) { found = parsePort(answer); }));
  return found;
}

Result<std::vector<QueuePair>> listQueuePairs(Socket& socket, std::uint32_t device_index) {
  Message message = askQueuePairs(device_index);
  std::vector<QueuePair> pairs;
  RETURN_IF_ERROR(socket.dump(
      message, fmt::format("list the queue pairs of RDMA device {}", device_index),
      [&](const nlmsghdr* answer) {
        for (QueuePair& pair : parseQueuePairs(answer)) pairs.push_back(std::move(pair));
      },
      [&] { pairs.clear(); }));
  return pairs;
}

Result<std::vector<QueuePair>> queuePairsOf(Socket& socket, std::uint32_t pid) {
  ASSIGN_OR_RETURN(const std::vector<Device> devices, listDevices(socket));
  std::vector<QueuePair> found;
  for (const Device& device : devices) {
    auto pairs = listQueuePairs(socket, device.index);
    if (pairs.status().code() == Code::kNotFound) continue;  // it has just gone
    if (!pairs.ok()) return pairs.status();
    std::ranges::copy_if(*pairs, std::back_inserter(found),
                         [&](const QueuePair& pair) { return pair.pid == pid; });
  }
  return found;
}

Result<Holders> readHolders(Socket& socket, std::uint32_t device_index) {
  Holders holders;
  const std::string attempt = fmt::format("list who has RDMA device {} open", device_index);
  Message contexts = askContexts(device_index);
  RETURN_IF_ERROR(socket.dump(
      contexts, attempt,
      [&](const nlmsghdr* answer) {
        for (const std::uint32_t pid : parseContexts(answer)) holders.pids.push_back(pid);
      },
      [&] { holders.pids.clear(); }));
  Message resources = askResources(device_index);
  RETURN_IF_ERROR(socket.ask(resources, attempt, [&](const nlmsghdr* answer) {
    const Counters counted = parseResources(answer);
    if (const auto found = counted.find("ctx"); found != counted.end()) {
      holders.contexts = found->second;
    }
  }));
  // A kernel that does not count them.
  holders.contexts = std::max<std::uint64_t>(holders.contexts, holders.pids.size());
  std::ranges::sort(holders.pids);
  holders.pids.erase(std::unique(holders.pids.begin(), holders.pids.end()), holders.pids.end());
  return holders;
}

Result<Counters> readCounters(Socket& socket, std::uint32_t device_index, std::uint32_t port) {
  Message message = askCounters(device_index, port);
  Counters counters;
  const Status status =
      socket.ask(message, fmt::format("read the counters of RDMA device {}", device_index),
                 [&](const nlmsghdr* answer) { counters = parseCounters(answer); });
  // What a driver without counters makes the kernel say.
  if (status.code() == Code::kInvalidArgument) return Status(Code::kUnsupported, status.message());
  if (!status.ok()) return status;
  return counters;
}

Result<CharacterDevice> readCharacterDevice(Socket& socket, std::uint32_t device_index) {
  Message message = askCharacterDevice(device_index);
  CharacterDevice device;
  RETURN_IF_ERROR(socket.ask(
      message, fmt::format("ask which driver RDMA device {} has (module ib_uverbs)", device_index),
      [&](const nlmsghdr* answer) { device = parseCharacterDevice(answer); }));
  return device;
}

Status createLink(Socket& socket, std::string_view name, std::string_view type,
                  std::string_view netdev) {
  return socket.request(addLink(name, type, netdev),
                        fmt::format("add the {} device {} over {}", type, name, netdev));
}

Status removeLink(Socket& socket, const Device& device) {
  return socket.request(deleteLink(device.index),
                        fmt::format("delete the RDMA device {}", device.name));
}

}  // namespace faultline::rdma

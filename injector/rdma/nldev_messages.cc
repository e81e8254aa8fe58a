#include "injector/rdma/nldev_messages.h"

#include <fmt/format.h>
#include <rdma/rdma_netlink.h>

#include <array>
#include <span>

namespace faultline::rdma {
namespace {

using netlink::forEachNested;
using netlink::Message;

using NldevAttributes = netlink::Attributes<RDMA_NLDEV_ATTR_MAX - 1>;

/// Messages of this family have no header of their own before the attributes.
constexpr int kFamilyHeader = 0;

/// The kernel takes any of the bits of NLM_F_DUMP for a dump, and NLM_F_EXCL is one of them: the
/// flags that say "new" elsewhere must not be set here.
Message nldevRequest(int command) {
  return Message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), 0, std::string_view(""));
}

Message requestOf(int command, std::uint32_t device_index) {
  Message message = nldevRequest(command);
  message.put(RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
  return message;
}

std::string nameOf(std::span<const std::string_view> names, std::uint8_t value,
                   std::string_view what) {
  if (value < names.size() && !names[value].empty()) return std::string(names[value]);
  return fmt::format("{} {}", what, value);
}

// enum ib_qp_type and enum ib_qp_state of the kernel's ib_verbs.h.
constexpr std::array<std::string_view, 11> kQueuePairTypes{
    "SMI",           "GSI", "RC",         "UC",      "UD",     "RAW_IPV6",
    "RAW_ETHERTYPE", "",    "RAW_PACKET", "XRC_INI", "XRC_TGT"};
constexpr std::array<std::string_view, 7> kQueuePairStates{"RESET", "INIT", "RTR", "RTS",
                                                           "SQD",   "SQE",  "ERR"};

QueuePair parseQueuePair(const nlattr* entry, const std::string& device) {
  const NldevAttributes found(entry);
  QueuePair pair;
  pair.device = device;
  pair.port = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX);
  pair.number = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_RES_LQPN);
  if (found[RDMA_NLDEV_ATTR_RES_RQPN] != nullptr) {
    pair.remote_number = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_RES_RQPN);
  }
  pair.type = nameOf(kQueuePairTypes, found.value<std::uint8_t>(RDMA_NLDEV_ATTR_RES_TYPE), "type");
  pair.state =
      nameOf(kQueuePairStates, found.value<std::uint8_t>(RDMA_NLDEV_ATTR_RES_STATE), "state");
  if (found[RDMA_NLDEV_ATTR_RES_PID] != nullptr) {
    pair.pid = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_RES_PID);
  }
  pair.kernel_owner = found.text(RDMA_NLDEV_ATTR_RES_KERN_NAME);
  return pair;
}

}  // namespace

std::string toString(PortState state) {
  constexpr std::array<std::string_view, 6> kNames{"NOP",   "DOWN",   "INIT",
                                                   "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return nameOf(kNames, static_cast<std::uint8_t>(state), "state");
}

std::string toString(PhysicalState state) {
  constexpr std::array<std::string_view, 8> kNames{
      "", "SLEEP", "POLLING", "DISABLED", "TRAINING", "LINK_UP", "ERROR_RECOVERY", "PHY_TEST"};
  return nameOf(kNames, static_cast<std::uint8_t>(state), "state");
}

Message askDevices() { return nldevRequest(RDMA_NLDEV_CMD_GET); }

Message askPorts(std::uint32_t device_index) {
  return requestOf(RDMA_NLDEV_CMD_PORT_GET, device_index);
}

Message askPort(std::uint32_t device_index, std::uint32_t port) {
  Message message = requestOf(RDMA_NLDEV_CMD_PORT_GET, device_index);
  message.put(RDMA_NLDEV_ATTR_PORT_INDEX, port);
  return message;
}

Message askQueuePairs(std::uint32_t device_index) {
  return requestOf(RDMA_NLDEV_CMD_RES_QP_GET, device_index);
}

Message askContexts(std::uint32_t device_index) {
  return requestOf(RDMA_NLDEV_CMD_RES_CTX_GET, device_index);
}

Message askResources(std::uint32_t device_index) {
  return requestOf(RDMA_NLDEV_CMD_RES_GET, device_index);
}

Message askCounters(std::uint32_t device_index, std::uint32_t port) {
  Message message = requestOf(RDMA_NLDEV_CMD_STAT_GET, device_index);
  message.put(RDMA_NLDEV_ATTR_PORT_INDEX, port);
  return message;
}

Message askCharacterDevice(std::uint32_t device_index) {
  Message message = requestOf(RDMA_NLDEV_CMD_GET_CHARDEV, device_index);
  message.putString(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
  return message;
}

Message addLink(std::string_view name, std::string_view type, std::string_view netdev) {
  Message message = nldevRequest(RDMA_NLDEV_CMD_NEWLINK);
  message.putString(RDMA_NLDEV_ATTR_DEV_NAME, name);
  message.putString(RDMA_NLDEV_ATTR_LINK_TYPE, type);
  message.putString(RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
  return message;
}

Message deleteLink(std::uint32_t device_index) {
  return requestOf(RDMA_NLDEV_CMD_DELLINK, device_index);
}

Device parseDevice(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  Device device;
  device.index = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX);
  device.name = found.text(RDMA_NLDEV_ATTR_DEV_NAME);
  // Of a device this is the number of its ports.
  device.ports = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX);
  device.protocol = found.text(RDMA_NLDEV_ATTR_DEV_PROTOCOL);
  return device;
}

Port parsePort(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  Port port;
  port.device_index = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX);
  port.device = found.text(RDMA_NLDEV_ATTR_DEV_NAME);
  port.number = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX);
  port.state = static_cast<PortState>(found.value<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_STATE));
  port.physical =
      static_cast<PhysicalState>(found.value<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_PHYS_STATE));
  port.netdev_ifindex = static_cast<int>(found.value<std::uint32_t>(RDMA_NLDEV_ATTR_NDEV_INDEX));
  port.netdev = found.text(RDMA_NLDEV_ATTR_NDEV_NAME);
  return port;
}

std::vector<QueuePair> parseQueuePairs(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  const std::string device(found.text(RDMA_NLDEV_ATTR_DEV_NAME));
  std::vector<QueuePair> pairs;
  forEachNested(found[RDMA_NLDEV_ATTR_RES_QP], [&](const nlattr* entry) {
    if (nla_type(entry) != RDMA_NLDEV_ATTR_RES_QP_ENTRY) return;
    pairs.push_back(parseQueuePair(entry, device));
  });
  return pairs;
}

std::vector<std::uint32_t> parseContexts(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  std::vector<std::uint32_t> pids;
  forEachNested(found[RDMA_NLDEV_ATTR_RES_CTX], [&](const nlattr* entry) {
    if (nla_type(entry) != RDMA_NLDEV_ATTR_RES_CTX_ENTRY) return;
    const NldevAttributes context(entry);
    if (context[RDMA_NLDEV_ATTR_RES_PID] == nullptr) return;
    pids.push_back(context.value<std::uint32_t>(RDMA_NLDEV_ATTR_RES_PID));
  });
  return pids;
}

Counters parseResources(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  Counters resources;
  forEachNested(found[RDMA_NLDEV_ATTR_RES_SUMMARY], [&](const nlattr* entry) {
    if (nla_type(entry) != RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY) return;
    const NldevAttributes one(entry);
    const std::string_view name = one.text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME);
    if (name.empty()) return;
    resources.insert_or_assign(std::string(name),
                               one.value<std::uint64_t>(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR));
  });
  return resources;
}

Counters parseCounters(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  Counters counters;
  forEachNested(found[RDMA_NLDEV_ATTR_STAT_HWCOUNTERS], [&](const nlattr* entry) {
    if (nla_type(entry) != RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY) return;
    const NldevAttributes counter(entry);
    const std::string_view name = counter.text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME);
    if (name.empty()) return;
    counters.insert_or_assign(std::string(name), counter.value<std::uint64_t>(
                                                     RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE));
  });
  return counters;
}

CharacterDevice parseCharacterDevice(const nlmsghdr* answer) {
  const NldevAttributes found(answer, kFamilyHeader);
  CharacterDevice device;
  device.name = found.text(RDMA_NLDEV_ATTR_CHARDEV_NAME);
  device.driver_id = found.value<std::uint32_t>(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID);
  return device;
}

}  // namespace faultline::rdma

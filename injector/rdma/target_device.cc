#include "injector/rdma/target_device.h"

#include <poll.h>

#include <fstream>
#include <vector>

#include "base/clock.h"
#include "injector/netlink/indispensable.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/needed_peers.h"

namespace faultline::rdma {
namespace {

// An adapter trains its link anew, which takes seconds; software devices are back at once.
constexpr Duration kReturnBudget = 20s;
constexpr int kLookAgainMilliseconds = 5;
constexpr BitsPerSecond kBitsPerMegabit = 1'000'000;

}  // namespace

Result<TargetDevice> TargetDevice::open(const RdmaTarget& target) {
  ASSIGN_OR_RETURN(netlink::Socket rdma, openSocket());
  ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket route, netlink::Socket::open(here.get()));
  TargetDevice opened(std::move(rdma), std::move(route));
  ASSIGN_OR_RETURN(opened.known_, opened.lookUp(target.device, target.port));
  return opened;
}

Result<KnownDevice> TargetDevice::lookUp(const std::string& name, std::uint32_t port) {
  KnownDevice found;
  ASSIGN_OR_RETURN(found.device, findDevice(rdma_, name));
  RETURN_IF_ERROR(requirePort(found.device, port));
  ASSIGN_OR_RETURN(found.port, rdma::readPort(rdma_, found.device.index, port));
  ASSIGN_OR_RETURN(found.character, readCharacterDevice(rdma_, found.device.index));
  found.device_class = classify(found.character.driver_id, found.device.protocol);
  return found;
}

Status TargetDevice::findAgain() {
  ASSIGN_OR_RETURN(const std::vector<Device> listed, listDevices(rdma_));
  ASSIGN_OR_RETURN(known_, sameOrMadeAgain(known_, listed, [this] {
                     return lookUp(known_.device.name, known_.port.number);
                   }));
  return okStatus();
}

std::string TargetDevice::portName() const {
  return fmt::format("{}/{}", known_.device.name, known_.port.number);
}

Result<Port> TargetDevice::readPort() {
  return rdma::readPort(rdma_, known_.device.index, known_.port.number);
}

Result<Counters> TargetDevice::readCounters() {
  auto counters = rdma::readCounters(rdma_, known_.device.index, known_.port.number);
  if (counters.status().code() == Code::kUnsupported) return Counters();
  return counters;
}

Result<netlink::NetDevice> TargetDevice::readNetdev() {
  if (known_.port.netdev_ifindex == 0) {
    return errorf(Code::kUnsupported,
                  "port {} has no network interface in this network namespace; run this where the "
                  "interface is (nsenter -t PID -n)",
                  portName());
  }
  return netlink::readNetDevice(route_, known_.port.netdev_ifindex);
}

Status TargetDevice::requireActive() {
  ASSIGN_OR_RETURN(const Port port, readPort());
  if (port.state == PortState::kActive) return okStatus();
  return errorf(Code::kUnavailable, "port {} does not work even now: it is {}, physically {}",
                portName(), toString(port.state), toString(port.physical));
}

Status TargetDevice::requireNotManagement() {
  ASSIGN_OR_RETURN(const auto reason, netlink::whyIndispensable(route_, known_.port.netdev_ifindex,
                                                                netlink::neededPeers()));
  if (!reason) return okStatus();
  return errorf(Code::kPermissionDenied, "{}, the interface of {}, {}", known_.port.netdev,
                portName(), *reason);
}

Status TargetDevice::requireNoBond() {
  ASSIGN_OR_RETURN(netlink::NetDevice link, readNetdev());
  if (link.kind != "bond" && link.bridge_ifindex != 0) {
    ASSIGN_OR_RETURN(link, netlink::readNetDevice(route_, link.bridge_ifindex));
  }
  if (link.kind != "bond") return okStatus();
  return errorf(
      Code::kUnsupported,
      "{} is a bond or a part of one ({}): the RDMA port follows the bond, which lives on "
      "without one of its interfaces; take the switch's ports down",
      known_.port.netdev, link.name);
}

Status TargetDevice::awaitActive() {
  const TimePoint deadline = now() + kReturnBudget;
  while (true) {
    ASSIGN_OR_RETURN(const Port port, readPort());
    if (port.state == PortState::kActive && port.physical == PhysicalState::kLinkUp) {
      return okStatus();
    }
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "port {} did not come back: it is {}, physically {}",
                    portName(), toString(port.state), toString(port.physical));
    }
    ::poll(nullptr, 0, kLookAgainMilliseconds);
  }
}

BitsPerSecond TargetDevice::linkRate() const {
  std::ifstream file(fmt::format("/sys/class/net/{}/speed", known_.port.netdev));
  BitsPerSecond megabits = 0;
  if (!(file >> megabits) || megabits <= 0) return 0;
  return megabits * kBitsPerMegabit;
}

}  // namespace faultline::rdma

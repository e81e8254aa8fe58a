#include "injector/rdma/known_device.h"

#include <algorithm>
#include <string>

namespace faultline::rdma {
namespace {

std::string inWords(const KnownDevice& known) {
  return fmt::format("{} over {}", toString(known.device_class),
                     known.port.netdev.empty() ? "no network interface" : known.port.netdev);
}

}  // namespace

Status requirePort(const Device& device, std::uint32_t port) {
  if (port >= 1 && port <= device.ports) return okStatus();
  return errorf(Code::kNotFound, "the RDMA device {} has no port {}: its ports are 1 to {}",
                device.name, port, device.ports);
}

Result<KnownDevice> sameOrMadeAgain(const KnownDevice& known, const std::vector<Device>& listed,
                                    const LookUp& look_up) {
  const auto listed_at = std::ranges::find(listed, known.device.index, &Device::index);
  if (listed_at != listed.end()) return known;
  auto found = look_up();
  if (found.status().code() == Code::kNotFound) {
    return errorf(Code::kUnavailable,
                  "the RDMA device {} was deleted since this fault was prepared: {}; what has "
                  "deleted it (rdma_link_delete) must be over before",
                  known.device.name, found.status().message());
  }
  if (!found.ok()) return found.status();
  // An interface that was made again has another number, too, whatever its name is.
  if (found->device_class == known.device_class &&
      found->port.netdev_ifindex == known.port.netdev_ifindex) {
    return found;
  }
  return errorf(
      Code::kUnavailable,
      "the RDMA device {} is another one since this fault was prepared: it was {} (number "
      "{}), and is {} (number {})",
      known.device.name, inWords(known), known.port.netdev_ifindex, inWords(*found),
      found->port.netdev_ifindex);
}

}  // namespace faultline::rdma

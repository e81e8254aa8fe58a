#include "harness/site/rdma_vm/vm_plan.h"

#include <fmt/format.h>

#include "harness/site/addresses.h"

namespace faultline::rdma_vm {
namespace {

// Second-lowest bit of the first byte: locally administered. 52:54:00 is what qemu uses itself.
constexpr std::array<std::uint8_t, 3> kMacPrefix{0x52, 0x54, 0x00};

}  // namespace

Status VmSpec::check() const {
  const auto outside = [](int value, int least, int most) { return value < least || value > most; };
  if (outside(hosts, 1, kMost.nodes)) {
    return errorf(Code::kInvalidArgument, "a laboratory has 1 to {} hosts, not {}", kMost.nodes,
                  hosts);
  }
  if (outside(rails, 1, kMost.rails)) {
    return errorf(Code::kInvalidArgument, "a host of the laboratory has 1 to {} rails, not {}",
                  kMost.rails, rails);
  }
  if (memoryMiB < kSmallestMemoryMiB) {
    return errorf(Code::kInvalidArgument, "a guest needs {} MiB of memory at least, not {}",
                  kSmallestMemoryMiB, memoryMiB);
  }
  if (mtu < kSmallestMtu || mtu > kLargestMtu) {
    return errorf(Code::kInvalidArgument, "the rails of the laboratory have an MTU of {} to {}",
                  kSmallestMtu, kLargestMtu);
  }
  if (!sharedFolder.empty() && sharedFolder.front() != '/') {
    return errorf(Code::kInvalidArgument, "the folder to share with guests is not absolute: {}",
                  sharedFolder);
  }
  return okStatus();
}

std::string nicName(int nic) {
  return nic == 0 ? std::string(site::kManagementName) : site::railName(nic - 1);
}

std::string nicAddress(int host, int nic) {
  return nic == 0 ? site::managementAddress(host) : site::railAddress(host, nic - 1);
}

std::string rdmaDeviceName(int rail) { return fmt::format("rxe{}", rail); }

MacAddress macOf(int host, int nic) {
  return {kMacPrefix[0],
          kMacPrefix[1],
          kMacPrefix[2],
          static_cast<std::uint8_t>(nic),
          0,
          static_cast<std::uint8_t>(host)};
}

std::string inWords(const MacAddress& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3],
                     mac[4], mac[5]);
}

int hostOf(const MacAddress& mac) {
  const bool ours =
      mac[0] == kMacPrefix[0] && mac[1] == kMacPrefix[1] && mac[2] == kMacPrefix[2] && mac[4] == 0;
  return ours ? mac[5] : -1;
}

}  // namespace faultline::rdma_vm

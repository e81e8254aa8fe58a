#pragma once

#include <span>

#include "base/status.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/packet_program.h"

namespace faultline::injector {

/// Programs that the switch's port runs on what the node sends (Passing::kReceived) and on what it
/// should receive (kSent).
class PortProgram {
 public:
  explicit PortProgram(const netlink::LinkTarget& target) : port_(target.attachment) {}

  static constexpr const char* kMechanism =
      "netlink: a program on the switch's port sees every packet (clsact, cls_bpf, eBPF)";

  /// Whether such programs can be run; leaves nothing behind. Errors as addPacketPrograms().
  Status tryOut(std::span<const netlink::PacketProgram> harmless) {
    RETURN_IF_ERROR(install(harmless));
    return remove();
  }
  Status install(std::span<const netlink::PacketProgram> programs) {
    return netlink::addPacketPrograms(*port_.socket, port_.ifindex, programs);
  }
  Status remove() { return netlink::removePacketPrograms(*port_.socket, port_.ifindex); }

 private:
  netlink::LinkEnd port_;
};

}  // namespace faultline::injector

#pragma once

#include <string>
#include <vector>

#include "harness/site/rdma_vm/vm_plan.h"

namespace faultline::rdma_vm {

/// The program, as it is looked for on the PATH.
inline constexpr const char* kQemuProgram = "qemu-system-x86_64";

/// Descriptors that qemu finds open. Everything between a guest and the outside is one: there are
/// no sockets in the file system or on the network that could collide, or be left.
struct QemuFds {
  std::vector<int> nics;  ///< datagram sockets to the switch: a datagram is a frame
  int agent = -1;         ///< stream socket: the virtio-serial port of the guest's agent
  int qmp = -1;           ///< stream socket: qemu's own control protocol
  int initramfs = -1;     ///< memory
};

/// The name by which QMP knows a NIC of the guest.
std::string qemuNicName(int nic);

/// The name of the virtio-serial port, inside the guest.
inline constexpr const char* kAgentPortName = "faultline.agent";

/// How the machine's root and the shared folder are called over 9p.
inline constexpr const char* kRootTag = "faultline_root";
inline constexpr const char* kSharedTag = "faultline_shared";

/// qemu's arguments for one host, [0] being its name. Its console is qemu's standard output. Pure.
std::vector<std::string> qemuCommand(const VmSpec& spec, int host, const std::string& kernel,
                                     const QemuFds& fds);

}  // namespace faultline::rdma_vm

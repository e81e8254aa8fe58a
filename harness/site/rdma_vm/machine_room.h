#pragma once

#include "base/status.h"
#include "harness/launch/process.h"
#include "harness/site/rdma_vm/qemu_command.h"

namespace faultline::rdma_vm {

/// The descriptors that the machine room inherits (launch::SpawnOptions::inherited_fds), and those
/// that it hands on to each qemu. Pure.
struct RoomFds {
  static constexpr int kPerHost = 3;
  static int agent(int host) { return launch::kFirstInheritedFd + kPerHost * host; }
  static int qmp(int host) { return agent(host) + 1; }
  static int console(int host) { return agent(host) + 2; }
  static int initramfs(int hosts) { return agent(hosts); }
  static int ports(int hosts) { return agent(hosts) + 1; }
};
QemuFds guestFds(int nics);

/// What the hidden verb `machine-room` does: the first process of a process namespace, in which all
/// guests of a laboratory run, and the switch between them. It starts every qemu, moves frames from
/// guest to guest, and says when a guest has ended. When it ends itself, and however, the kernel
/// ends the guests; it does so when the controller dies.
///
/// Needs the descriptors of Process and those of RoomFds. What it is told and says: wire/guest.h.
int machineRoomMain();

}  // namespace faultline::rdma_vm

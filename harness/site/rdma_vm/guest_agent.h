#pragma once

namespace faultline::rdma_vm {

/// What the hidden verb `guest-agent` does: the first process of a guest (after init/init.cc). It
/// sets the host up and runs programs, each job under a guard of its own (agent/guard.h), which it
/// passes messages to and from. Everything goes through a virtio-serial port, which no fault of a
/// network strikes. It ends with the guest. What it is told and says:
/// wire/guest.h.
int guestAgentMain();

}  // namespace faultline::rdma_vm

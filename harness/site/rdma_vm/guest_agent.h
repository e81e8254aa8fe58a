#pragma once

namespace faultline::rdma_vm {

/// What the hidden verb `guest-agent` does: the first process of a guest (after init/init.cc). It
/// sets the host up, and is its node's agent then (agent/agent.h). Everything goes through a
/// virtio-serial port, which no fault of a network strikes. It ends with the guest. What it is told
/// and says: wire/guest.h and wire/agent.h.
int guestAgentMain();

}  // namespace faultline::rdma_vm

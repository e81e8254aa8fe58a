#pragma once

#include "harness/site/kind.h"

namespace faultline::rdma_vm {

/// A guest of qemu with RDMA devices per node, on this machine.
extern const site::Kind kKind;

}  // namespace faultline::rdma_vm

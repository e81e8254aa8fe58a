#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "injector/fault.h"
#include "injector/fault_table.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// Makes the fault of the given kind (see faultKinds()) for a link. `parameters` must have been
/// read for the same kind. The target's sockets must outlive the fault. kNotFound for an unknown
/// kind, and for those of RDMA devices (rdma_registry.h).
Result<std::unique_ptr<Fault>> makeFault(std::string_view kind, const FaultParameters& parameters,
                                         const netlink::LinkTarget& target);

}  // namespace faultline::injector

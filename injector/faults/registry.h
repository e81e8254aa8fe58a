#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"

/// All faults: what describes them (no I/O, no netlink in sight of who asks), and how one is made.
namespace faultline::injector {

/// All faults, in the order in which they are listed.
std::span<const FaultKind> faultKinds();

/// nullptr when there is none of that name.
const FaultKind* findFaultKind(std::string_view name);

/// The first of the list with this property, which one of them has.
const FaultKind& firstFaultKind(bool FaultKind::*property);

/// "the fault a", "the faults a, b (how: reset) and c": those that need this, in the order of the
/// list, each with when it does. For a mechanism that one of them needs.
std::string faultsThatNeed(KernelMechanism mechanism);

/// Whether it strikes queue pairs, by the verbs shim in the program that has them.
bool isOfQueuePairs(std::string_view name);

/// Whether it strikes RDMA devices and their ports.
bool isOfRdmaDevices(std::string_view name);

/// Makes the fault of the given kind for a link. `parameters` must have been read for the same
/// kind. The target's sockets must outlive the fault. kNotFound for an unknown kind, and for those
/// of RDMA devices.
Result<std::unique_ptr<Fault>> makeFault(std::string_view kind, const FaultParameters& parameters,
                                         const netlink::LinkTarget& target);

/// Makes the fault of the given kind (those of TargetKind::kRdma) for an RDMA device in the network
/// namespace of the thread that calls its prepare(), which looks the device up. `parameters` must
/// have been read for the same kind. kNotFound for an unknown kind.
Result<std::unique_ptr<Fault>> makeRdmaFault(std::string_view kind,
                                             const FaultParameters& parameters,
                                             const rdma::RdmaTarget& target);

}  // namespace faultline::injector

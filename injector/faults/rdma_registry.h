#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "injector/fault.h"
#include "injector/fault_table.h"
#include "injector/rdma/rdma_target.h"

namespace faultline::injector {

/// Makes the fault of the given kind (those of TargetKind::kRdma) for an RDMA device in the network
/// namespace of the thread that calls its prepare(), which looks the device up. `parameters` must
/// have been read for the same kind. kNotFound for an unknown kind.
Result<std::unique_ptr<Fault>> makeRdmaFault(std::string_view kind,
                                             const FaultParameters& parameters,
                                             const rdma::RdmaTarget& target);

}  // namespace faultline::injector
